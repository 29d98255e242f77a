# ruff: noqa: E501  # a template is one line, however long: wrapped, it could not be read as a sentence
"""Domains about schools, parcels, companies and doctors."""

from __future__ import annotations

from . import words
from .domain import Domain
from .kinds import (
    CODE,
    COMPANY,
    FIRST,
    JOB,
    PEOPLE,
    PERSON,
    PLACE,
    STREET,
    THING,
    TITLE,
    TOPIC,
    TOPICS,
    VENUE,
    choice,
    clock,
    date,
    decimals,
    flag,
    integers,
    price,
    rows,
    text_kind,
    year,
)

_WORD = text_kind(words.invented)

SCHOOL = Domain(
    "course",
    {
        "course": (TITLE, "course title class name"),
        "teacher": (PERSON, "teacher lecturer instructor taught_by"),
        "students": (integers(2, 300, 0.05), "students participants enrolled"),
        "room": (VENUE, "room place location"),
        "begins": (date, "begins start first_day start_date"),
        "ends": (date, "ends end last_day end_date"),
        "weekday": (choice(monday="Mondays/Monday", tuesday="Tuesdays/Tuesday", wednesday="Wednesdays/Wednesday", thursday="Thursdays/Thursday", friday="Fridays/Friday"), "weekday day"),
        "topics": (TOPICS, "topics subjects contents"),
        "grades": (rows("{name} {grade}||{name}: {grade}||{name} got {grade}||{grade} for {name}", 2, 4, name=FIRST, grade=integers(1, 100, 0)), "grades scores results marks"),
        "credits": (integers(1, 30, 0.2), "credits points ects"),
        "fee": (price, "fee price cost"),
        "online": (flag("held online/takes place online", "held in person/not online"), "online is_online"),
        "topic": (TOPIC, "topic subject field"),
    },
    [
        "{course}, taught by {teacher}, [begins on|starts on] {begins} in {room}.",
        "{teacher} teaches {course} on {weekday}[, {online}|]. {students} students have enrolled.",
        "Course: {course}. Topics: {topics}. {credits} credits. Fee: {fee}.",
        "From {begins} to {ends}, {weekday}, {course} with {teacher}, {room}.",
        "[Grades|Scores|Results] in {topic}: {grades}.",
        "{grades}. Marked by {teacher}.",
        "{teacher} gave a course on {topic} for {students} people; it was {online}.",
        "Sign up for {course} ({credits} points) before {begins}.",
    ],
    ["Ends on {ends}.", "It is {online}.", "The fee is {fee}.", "{students} students.", "Topics: {topics}.", "On {weekday}."],
    {"name": "name student who", "grade": "grade score points mark"},
)  # fmt: skip

PARCELS = Domain(
    "parcel",
    {
        "code": (CODE, "code tracking tracking_number id"),
        "sender": (COMPANY, "sender from shipper"),
        "receiver": (PERSON, "receiver to recipient addressee"),
        "weight": (decimals(0.1, 70), "weight weight_kg kg"),
        "status": (choice(delivered="has been delivered/was delivered/delivered", in_transit="is on its way/in transit", lost="is lost/got lost", returned="was sent back/returned to sender", waiting="waits at the depot/is waiting to be picked up"), "status state"),
        "city": (PLACE, "city destination place"),
        "date": (date, "date expected delivery_date arrived_on"),
        "contents": (THING, "contents content item inside"),
        "carrier": (COMPANY, "carrier courier by"),
        "fragile": (flag("fragile/handle with care", "not fragile/nothing breakable inside"), "fragile is_fragile"),
        "value": (price, "value insured_value worth"),
    },
    [
        "Parcel {code} from {sender} to {receiver} {status}.",
        "[Your parcel|The package] {code} ({weight} kg) {status}; {city}, {date}.",
        "{carrier} brings a {contents} to {receiver} in {city} on {date}. {fragile}.",
        "{sender} shipped a {contents} worth {value} to {receiver}, tracking {code}. It {status}.",
        "{code} {status} {city} {date} {weight}kg",
        "{receiver}, your {contents} from {sender} {status}. Carrier: {carrier}.",
        "Shipment: {contents}, {weight} kg, {fragile}, to {city}, by {carrier}.",
    ],
    ["{fragile}.", "Weight: {weight} kg.", "Value: {value}.", "Carrier: {carrier}.", "Tracking number {code}.", "Expected on {date}."],
)  # fmt: skip

NEWS = Domain(
    "news",
    {
        "buyer": (COMPANY, "buyer acquirer company purchaser"),
        "target": (COMPANY, "target acquired seller second_company"),
        "price": (integers(1, 9000, 0), "price_millions millions value"),
        "date": (date, "date announced_on on"),
        "ceo": (PERSON, "ceo chief boss spokesperson"),
        "city": (PLACE, "city headquarters based_in"),
        "staff": (integers(3, 90000, 0.02), "staff employees jobs"),
        "industry": (TOPIC, "industry sector field"),
        "profit": (flag("made a profit/is profitable", "made a loss/is not profitable"), "profit profitable"),
        "founded": (year, "founded founded_in year"),
        "founders": (PEOPLE, "founders founded_by"),
        "product": (THING, "product launches makes"),
        "position": (JOB, "position new_role appointed_as"),
    },
    [
        "{buyer} [buys|acquires|takes over|has bought] {target} for {price} million on {date}.",
        "{buyer} of {city} [makes|sells|has launched] a new {product}, says {ceo}.",
        "{founders} founded {buyer} in {founded}[ in {city}|]. It {profit}.",
        "{ceo} is the new {position} of {buyer}, which has {staff} employees.",
        "{city}-based {buyer} ({industry}) {profit} and employs {staff} people.",
        "On {date}, {ceo} announced that {buyer} and {target} will merge.",
        "{target} was sold to {buyer} for {price} million, {ceo} said.",
        "{buyer}, founded in {founded} by {founders}, works in {industry}.",
    ],
    ["It has {staff} employees.", "It {profit}.", "The boss is {ceo}.", "It was founded in {founded}.", "Based in {city}.", "Industry: {industry}."],
)  # fmt: skip

VISITS = Domain(
    "appointment",
    {
        "patient": (PERSON, "patient name visitor client"),
        "doctor": (PERSON, "doctor physician with seen_by"),
        "date": (date, "date day on appointment_date"),
        "time": (clock, "time at hour"),
        "reason": (TOPIC, "reason about purpose"),
        "age": (integers(1, 99, 0.05), "age patient_age years"),
        "weight": (decimals(3, 140), "weight kg weight_kg"),
        "pulse": (integers(40, 180, 0), "pulse heart_rate bpm"),
        "drug": (_WORD, "drug medicine medication"),
        "dose": (integers(1, 900, 0), "dose dose_mg mg"),
        "first_visit": (flag("first visit/has never been here before", "has been here before/a regular patient"), "first_visit new_patient"),
        "place": (STREET, "place practice address"),
    },
    [
        "{patient} [sees|has an appointment with] Dr. {doctor} on {date} at {time}.",
        "Appointment: {date}, {time}, {patient}, Dr. {doctor}, {place}.",
        "Dr {doctor} gave {patient} ({age}) {dose} mg of {drug} on {date}.",
        "Patient {patient}, {age} years, {weight} kg, pulse {pulse}, {first_visit}.",
        "{patient} takes {dose} mg {drug} twice a day, says Dr {doctor}.",
        "[Cancelled|Moved|Confirmed]: {patient} with {doctor}, {date} {time}.",
        "{first_visit}: {patient}, aged {age}, seen by {doctor} at {time}.",
        "Come to {place} on {date} at {time}; Dr. {doctor} will talk about {reason}.",
    ],
    ["{first_visit}.", "Pulse {pulse}.", "Weight {weight} kg.", "Medicine: {drug}, {dose} mg.", "At {place}.", "Age: {age}."],
)  # fmt: skip

DOMAINS = [SCHOOL, PARCELS, NEWS, VISITS]
