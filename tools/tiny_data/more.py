# ruff: noqa: E501  # a template is one line, however long: wrapped, it could not be read as a sentence
"""More templates and facts by domain, for training only: the wider the wording, the less of it is learned by heart."""

from __future__ import annotations

CORE: dict[str, list[str]] = {
    "person": [
        "{job} {name}, {age}, {city}", "We would like to introduce {name}, who [works as|is] a {job}[| in {city}].", "{name} lives in {city}, is {age}, and works as a {job}.",
        "[Hello|Hi], I am {name}, a {job}. I am {age} and my home is {city}.", "There is a {job} in {city} called {name}[.| who is {age} years of age.]", "{name}, who is {age}, left {born_in} for {city} to become a {job}.",
        "[Interview with|Portrait of|A talk with] {name} ({age}), {job} in {city}.", "Last week {name}, {job} from {city}, [spoke to us|visited us|came by] with {children} children.", "The {age}-year-old {name} is a {job}; home town: {city}.",
        "{employer} has hired {name} from {city} as {job}.", "For {name}, a {age} year old from {city}, being a {job} is everything.", "It was in {city} that {name} started as a {job} at the age of {age}.",
        "My [neighbour|friend|cousin|boss] {name} is {age} and [works as a|is a] {job}.", "{name}: {job} at {employer}, {age}, from {born_in}, likes {hobbies}.", "A {job}, {name}, told us about life in {city}.",
        "{name} of {city}, a {job} aged {age}, [enjoys|is fond of] {hobbies}.", "i am a {job} and my name is {name}. i live in {city}", "{city}-born {job} {name} is {age}.",
    ],
    "event": [
        "{title}: {date}, {time}, {place}, {city}.", "We are happy to announce {title}, {date}, at {place}, [featuring|together with|with] {speakers}.", "{title} will take place in {place} on {date}[| and starts at {time}].",
        "[You can hear|You can meet|Come and see] {speakers} on {date} at {place} during {title}.", "Our {title} is on {date} in {city}, [at|in] {place}.", "{speakers} are the guests of {title} ({place}, {date}).",
        "Mark your calendar: {title} at {place}, {date}. [With|On stage|Talks by] {speakers}.", "Everyone is welcome at {title}! {date}, {place}. Guests: {speakers}.", "{place} hosts {title} on {date} with {speakers} and friends.",
        "{date} is the day of {title}. [We meet at|Venue:|The venue is] {place}. Speakers are {speakers}.", "At {place} in {city}: {title}, {date}, {time}, {fee}.", "Programme: {title}. Day: {date}. Venue: {place}. Speakers: {speakers}.",
        "Please join {title}. It takes place on {date} at {place}, and {speakers} will be there.", "The {title} happens on {date} at the place you know, {place}, with {speakers}.",
    ],
    "order": [
        "{customer} just ordered {items}.", "Order of {customer}: {items}; to pay: {total}.", "[I would like to buy|I want|Can I get] {items}? The bill of {total} goes to {customer}.", "Ship {items} to {customer} in {city}.",
        "{customer} bought {items} [and paid|for] {total} on {date}.", "The order contains {items}. Customer is {customer}, the total {total}.", "From {customer}: we require {items} by {delivery}.", "{date}: {customer} / {items} / {total}",
        "Please prepare {items} for {customer}; it comes to {total}.", "Sold to {customer}: {items}. Sum: {total}.", "A customer named {customer} asks for {items}, {express}.", "Could {customer} have {items} [please|soon|by {delivery}]?",
        "Send me {items}. Name: {customer}. Address: {address}, {city}.", "Our customer {customer} has chosen {items}, {total} in total.", "{items} were ordered by {customer} at {shop}.", "Please send {items} to {customer}.",
    ],
    "ticket": [
        "{reporter} wrote to us: the {product} {problem}. {priority}. {resolved}.", "{reporter}'s {product} {problem}. {resolved}. {priority}.", "The {product} of {reporter} {problem}. {priority}, {resolved}.", "Support request from {reporter} about the {product}: it {problem}. {resolved}.",
        "Complaint by {reporter}: {product} {problem}. {priority}.", "[There is|We have] a problem with the {product}, [reported|sent in|noticed] by {reporter}. It is {priority} and {resolved}.", "{id} / {reporter} / {product} / {priority} / {resolved}", "{reporter} called about a {product}. It {problem}. {priority}. {resolved}.",
        "Customer {reporter} says the {product} {problem}; {priority}, but {resolved}.", "{reporter}: the {product} {problem}, {priority}, {resolved}.", "Reported by {reporter} on {date}: {product} {problem}. {priority}. {resolved}.", "Good day, the {product} {problem}. {priority}. {resolved}. Signed, {reporter}",
        "{reporter} tells us that the {product} {problem}. It is {priority}. {resolved}.",
    ],
    "advert": [
        "{item}, {condition}, for {price}. {city}. Tel. {phone}", "I have a {item} to sell: {price}, {city}, phone {phone}.", "Buy my {item}! Only {price}. [You can get it in|It is in|Find it in] {city}.", "{item} for {price}[.|, {negotiable}.] Call {phone} or come to {city}.",
        "[Cheap|Great|Beautiful] {item} in {city}. Price: {price}. Phone: {phone}.", "Now selling: {item} ({condition}), {price}, {city}.", "To sell: {item}. {price}. {phone}.", "{seller} offers a {item}, {price}. [Call|Phone|Ring] {phone}. {city}.",
        "My {item} is for sale. It costs {price} and is in {city}. [Call me at|My number is|Reach me on] {phone}.", "{city} - {item} - {price} - {phone}", "Looking for a {item}? Mine is {condition} and costs {price}; {city}.", "A {item} for only {price}, to collect in {city}.",
    ],
    "meeting": [
        "On {date}, {present} sat together in {place}. {chair} took the chair.", "Topic: {topic}. Chair: {chair}. Attendees: {present}. Missing: {absent}.", "Follow-up of the {topic} meeting: {tasks}.", "To do after {date}: {tasks}. Next date: {next}.", "The meeting led by {chair} was about {topic}, with {present}.",
        "{present} discussed {topic} under {chair}.", "Decisions: {tasks}. Budget {budget}. {approved}.", "{votes}. These are the results of {date}.", "We counted the votes: {votes}.", "Participants: {present}; absent: {absent}; {date}, {place}.", "{chair} sums up: {tasks}.",
    ],
    "contact": [
        "{name} works at {company} as {title}; phone {phone}, mail {email}.", "Contact person: {name}, {email}, {phone}.", "{name}\n{street}\n{zip} {city}\n{country}", "{company} ({city}): {name}, {title}, {phone}", "For questions ask {name}, phone {phone}.", "My address is {street}, {zip} {city}. {name}", "{name} can be reached under {phone}; office: {street}, {city}.",
        "Send the papers to {company}, {street}, {city}, to the attention of {name}.", "{name}, {email}, {company}, {website}",
    ],
    "vacancy": [
        "{company} needs a {position} for {city}.", "Work as {position} with {company} in {city}, {hours} hours weekly, {salary} a year.", "Job: {position}. Where: {city}. Employer: {company}. {contract}. {remote}.", "We are hiring! {position}, {city}, {salary}, {remote}.", "From {start} {company} employs a new {position}; apply to {contact} before {deadline}.", "New job at {company}: {position} ({hours} h), {contract}, from {start}.",
        "If you know {skills}, become a {position} at {company}. {contact} is waiting for your mail: {email}.",
    ],
    "book": [
        "{author} wrote {title} in {year}.", "The book {title} by {author} has {pages} pages and costs {price}.", "{title} is a {genre} by {author}, published by {publisher} in {year}.", "I give {title} by {author} {rating} stars. {liked}.", "In {title}, {author} tells of {characters}.", "{reviewer} on {title} by {author}: {liked}!", "{year}: {author} publishes {title} at {publisher}.", "New from {publisher}: {title} by {author}, {pages} pages, {price}.",
    ],
    "log": [
        "{date} {time} [{level}] {service} {host}: status {status} in {duration} ms", "{time} {user} {success} {ip} port={port}", "{host}: {level}: {service} sent {bytes} bytes to {ip}", "{level} {time} user={user} path={path} status={status} bytes={bytes}", "{service}@{host} {level} request {path} by {user} took {duration}ms", "{ip} {path} {status} {duration}", "[{date} {time}] {host} {level} {success} user={user}", "The server {host} logged: {level}, {service}, {status}.", "{date} {host} port {port}: {user} {success}", "time={time} host={host} service={service} level={level}",
    ],
    "weather": [
        "The weather in {city} on {date}: {sky}, {temperature} degrees.", "{city} expects {sky} and up to {high} degrees, at night {low}.", "Tomorrow {city} gets {temperature}°C, {sky}, wind {wind} km/h.", "{temperature} degrees and {sky} in {city}.", "Measured in {city}: {temperature}°, {humidity}% humidity, wind {wind} km/h.", "Here are the values: {cities}.", "{date}: {cities}", "In {city} there were {rain} mm of rain and {sky}; {temperature} degrees.", "Min {low}, max {high}, {sky}: {city}, {date}.", "{city}: {sky}, {wind} km/h, {warning}.",
    ],
    "match": [
        "{home} won {home_goals}:{away_goals} against {away} on {date}.", "{home} - {away} {home_goals}:{away_goals} ({stadium}, {spectators} spectators)", "At {stadium}, {home} and {away} played {home_goals}-{away_goals}. Goals: {scorers}.", "{home} vs. {away}: {home_goals}-{away_goals}", "{date}, {stadium}: {home} against {away} ended {home_goals}:{away_goals}.", "Final score {home_goals}:{away_goals} between {home} and {away}, referee {referee}.", "{spectators} fans watched {home} play {away} ({home_goals}:{away_goals}).", "Games of {date}: {results}.", "Finish: {ranking}.", "Result list: {ranking}.",
    ],
    "booking": [
        "{guest}, {room}, {arrival} to {departure}, {hotel}", "Please book a {room} for {guest} from {arrival} until {departure}[, {breakfast}|].", "{hotel} in {city} confirms: {guest}, {nights} nights, {price}, code {code}.", "We have reserved a {room} for you, {guest}: {arrival} - {departure}.", "A table for {people} on {arrival} at {time} under the name {guest}.", "{guest} stays {nights} nights in {city}, {room}, {breakfast}.", "Arrival {arrival}, departure {departure}, {people} guests, booked by {guest}.", "{guest} and party ({people}) come to {hotel} on {arrival}.",
    ],
    "trip": [
        "{passenger}: {origin} to {destination}, {date}.", "The {mode} {number} goes from {origin} at {departs} to {destination} at {arrives}.", "{passenger} takes the {mode} from {origin} to {destination} for {price}.", "Departure {origin} {departs}, arrival {destination} {arrives}, {date}.", "Trip of {passenger} to {destination}, starting in {origin} on {date}, seat {seat}.", "{number} to {destination} from {origin}, gate {gate}, {delayed}.", "From {origin} {passenger} went to {destination} via {via}.", "To {destination} from {origin}: {distance} km, {price}.", "On {date} the {mode} {number} left {origin} for {destination}.",
    ],
    "invoice": [
        "{payer} has to pay {amount} to {payee} by {due}.", "{payee} sends {payer} invoice {number} for {amount}.", "Invoice {number}, {date}: {amount} for a {purpose}. {paid}.", "We received {amount} from {payer} on {date}.", "Bill no. {number} of {payee}: {net} {currency}, tax {tax}%, due {due}.", "{payer} paid {payee} {amount} for a {purpose}.", "Pay {amount} into {account}, {payee}, reference {number}.", "To {payer}: please settle {amount} until {due}. {payee}",
    ],
    "flat": [
        "{street}, {city}: {kind}, {rooms} rooms, {area} m², {rent}.", "A {kind} in {city} with {rooms} rooms for {rent} a month; {pets}.", "We rent out our {kind} ({area} m², floor {floor}) in {city} from {available}.", "Rent a {kind} at {street}: {rent} monthly, {balcony}.", "{kind} to rent, {city}, {area} square metres, {rooms} rooms, contact {landlord}.", "New: {kind}, {rooms} rooms, {rent}, {city}, call {phone}.", "{city}, {street}. {rooms} rooms on {area} m². {rent}. {balcony}. {pets}.",
    ],
    "recipe": [
        "To make {dish} you need {ingredients}.", "{dish} (serves {serves}, {minutes} minutes): {ingredients}.", "Take {ingredients}. Bake {minutes} minutes at {oven} degrees.", "{dish} by {cook} is {difficulty} and takes {minutes} minutes.", "Ingredients for {serves}: {ingredients}. {vegetarian}.", "{cook} recommends {dish}: {ingredients}, {oven} degrees, {calories} kcal.", "{dish}: {ingredients}; {difficulty}.",
    ],
    "place": [
        "{city} has {population} inhabitants and a mayor called {mayor}.", "The town of {city} in {country} was founded in {founded}.", "{city}, {country}: {population} people, {area} km², {height} m.", "Through {city} flows the {river}.", "{mayor} runs {city}, a place of {population} people in {country}.", "{city} is divided into {districts}.", "Visit {city} in {country}, known for {known_for}.", "{city} was founded in {founded} on the {river}; {capital}.",
    ],
    "animal": [
        "{name}, a {colour} {species}, {age} years, belongs to {owner}.", "My {species} {name} is missing since {date}. Please call {phone}.", "{owner} is looking for {name}, a {colour} {species}.", "The {species} is called {name}, weighs {weight} kg and {vaccinated}.", "{name} ({species}, {age}) ran away in {city} on {date}; {reward} reward.", "A {species} named {name} lives in {city} with {owner}.", "{species} {name}: {weight} kg, {age} years, {colour}.",
    ],
    "mail": [
        "{sender} to {recipient}, {date}: {subject}", "Dear {recipient}, I send you the {item}. {reply}. Yours, {sender}", "{sender} asks {recipient} to come to {place} at {time}.", "A message from {sender} for {recipient}: {subject}. {tone}.", "{recipient}: {sender} called, please phone {phone}.", "{tone}! The {item} arrived. Best, {sender}", "{sender} <{address}> wrote on {date}: {subject}", "Hello {recipient}, {subject} is on {date}. {reply}. {sender}", "To: {recipient}\nFrom: {sender}\nCc: {cc}\nSubject: {subject}",
    ],
    "reading": [
        "{sensor}: {temperature} °C, {pressure} hPa, {battery}%", "{date} {time} {sensor} {temperature} {battery}% {alarm}", "In {room} the sensor {sensor} shows {temperature} degrees.", "{sensor} is {state}, battery {battery} percent, {voltage} volts.", "Firmware {firmware} on {sensor}: {alarm}, {state}.", "At {time}: {readings}.", "Sensor values, {date}: {readings}", "{sensor} in {room} has {voltage} V and is {state}.", "Pressure {pressure}, temperature {temperature}, sensor {sensor}.",
    ],
    "course": [
        "{teacher} gives the course {course} from {begins} to {ends}.", "{course}: {weekday}, {room}, {teacher}, {credits} credits.", "In {course} you learn about {topics}. It costs {fee}.", "{students} people take {course} with {teacher}; it is {online}.", "The course {course} begins on {begins} and ends on {ends}.", "Results of the test: {grades}.", "{topic} test, marks: {grades}.", "{teacher} graded {topic}: {grades}.", "Course {course}, lecturer {teacher}, {students} students, {fee}.",
    ],
    "parcel": [
        "The parcel {code} for {receiver} {status}.", "{sender} sent {receiver} a {contents} ({weight} kg) with {carrier}.", "Tracking {code}: {status}, {city}, {date}.", "A {contents} for {receiver} {status}; sender: {sender}.", "{carrier}: parcel {code}, {weight} kg, to {receiver}, {city}.", "From {sender} to {receiver}: {contents}, value {value}, {fragile}.", "Hello {receiver}, your parcel {code} {status}.",
    ],
    "news": [
        "{buyer} and {target}: the deal is worth {price} million, says {ceo}.", "{ceo} leads {buyer}, an {industry} company from {city} with {staff} employees.", "{buyer} was founded in {founded} by {founders}.", "On {date} {buyer} presented the {product}.", "{target} now belongs to {buyer}.", "The company {buyer} from {city} {profit} this year, {ceo} reports.", "{founders} started {buyer} in {city} in {founded}.", "{buyer} names {ceo} as {position}.", "{buyer} pays {price} million for {target}.",
    ],
    "appointment": [
        "{patient}, {date}, {time}, Dr. {doctor}", "Dr. {doctor} will see {patient} at {time} on {date}.", "On {date}, {patient} ({age}) was seen by Dr. {doctor}.", "{patient} gets {dose} mg of {drug} from Dr. {doctor}.", "{patient}: pulse {pulse}, weight {weight} kg, age {age}.", "Your appointment with Dr. {doctor} is on {date} at {time}, {place}.", "{doctor} examined {patient}, {age}. Pulse: {pulse}. {first_visit}.", "{drug}, {dose} mg, for {patient}.",
    ],
}  # fmt: skip

FACTS: dict[str, list[str]] = {
    "person": ["Age: {age}.", "Profession: {job}.", "{name~} comes from {city}.", "{name~} works for {employer}.", "{name~}, by the way, {married}.", "Hobbies: {hobbies}.", "Contact: {email}.", "Date of birth: {born}.", "{name~} is {age} years old.", "{name~} works as a {job}.", "Home: {city}.", "[He|She] is {age} and {married}."],
    "event": ["Date: {date}.", "Venue: {place}.", "The venue is {place}.", "Tickets: {fee}.", "It begins at {time}.", "The host is {organiser}.", "We will talk about {topics}.", "Guests are {speakers}.", "On stage: {speakers}.", "The date is {date}.", "Seats: {seats}.", "City: {city}."],
    "order": ["The price is {total}.", "To be delivered to {city}.", "Please deliver by {delivery}.", "{paid}.", "{express}.", "Mail: {email}.", "The order was placed on {date}.", "Street: {address}.", "The number is {number}.", "Amount due: {total}."],
    "ticket": ["Priority: {priority}.", "Status: {resolved}.", "It is {resolved}.", "This is {priority}.", "Handled by {agent}.", "Ticket {id}.", "Please call {phone}.", "Mail {email}.", "{priority}.", "By now {resolved}.", "At the moment {resolved}."],
    "advert": ["Condition: {condition}.", "Price: {price}.", "City: {city}.", "It is {age} years old and {condition}.", "The colour is {colour}.", "Phone: {phone}.", "My number: {phone}.", "Seller: {seller}.", "It can be seen in {city}.", "{condition}."],
    "meeting": ["The chair was {chair}.", "Date: {date}.", "Topic: {topic}.", "Absent: {absent}.", "The budget is {budget}.", "{tasks}.", "Place: {place}.", "Actions: {tasks}.", "Present were {present}."],
    "contact": ["Telephone {phone}.", "E-mail: {email}.", "Company: {company}.", "Position: {title}.", "Address: {street}, {city}.", "See {website}.", "Postcode {zip}.", "Town: {city}."],
    "vacancy": ["Pay: {salary}.", "Place: {city}.", "Skills: {skills}.", "Contract: {contract}.", "Begin on {start}.", "Ask {contact}.", "Closing date {deadline}.", "{hours} hours."],
    "book": ["Author: {author}.", "Year: {year}.", "Publisher: {publisher}.", "Genre: {genre}.", "Price: {price}.", "{rating} stars.", "Pages: {pages}.", "{author} wrote it."],
    "weather": ["Temperature: {temperature}.", "Wind {wind} km/h.", "It is {sky}.", "Lowest {low}, highest {high}.", "{rain} mm of rain.", "{humidity} % humidity.", "{warning}."],
    "match": ["Final score {home_goals}:{away_goals}.", "Attendance: {spectators}.", "Goals by {scorers}.", "The referee was {referee}.", "Stadium: {stadium}.", "{overtime}."],
    "booking": ["Guest: {guest}.", "Room: {room}.", "From {arrival} to {departure}.", "Total: {price}.", "Booking code {code}.", "{nights} nights.", "City: {city}.", "For {people} persons."],
    "trip": ["From {origin}.", "To {destination}.", "Passenger: {passenger}.", "Price: {price}.", "It leaves at {departs}.", "It arrives at {arrives}.", "Date: {date}.", "Number: {number}.", "{distance} km."],
    "invoice": ["Date: {date}.", "Total: {amount}.", "Status: {paid}.", "For a {purpose}.", "Payable by {due}.", "Reference: {number}.", "Net {net}.", "From {payer}.", "To {payee}."],
    "flat": ["Rooms: {rooms}.", "Size: {area} m².", "Rent: {rent}.", "City: {city}.", "Available {available}.", "{balcony}.", "Contact: {landlord}.", "Year of construction: {built}."],
    "recipe": ["Serves {serves}.", "{minutes} minutes.", "Ingredients: {ingredients}.", "Oven: {oven}.", "Difficulty: {difficulty}.", "Cook: {cook}."],
    "place": ["Population: {population}.", "Country: {country}.", "River: {river}.", "The mayor is {mayor}.", "Districts: {districts}.", "Year of foundation: {founded}."],
    "animal": ["Name: {name}.", "Species: {species}.", "Colour: {colour}.", "Lost on {date}.", "Last seen in {city}.", "It {vaccinated}.", "Call {phone}."],
    "mail": ["Subject: {subject}.", "It is about {subject}.", "At {time}.", "Place: {place}.", "Attached: {item}.", "Sent on {date}.", "From {sender}.", "To {recipient}."],
    "reading": ["Temperature {temperature}.", "Pressure {pressure} hPa.", "Time: {time}.", "Room: {room}.", "Sensor: {sensor}.", "On {date}."],
    "course": ["Teacher: {teacher}.", "Room: {room}.", "Day: {weekday}.", "Credits: {credits}.", "Start: {begins}.", "Price: {fee}.", "Participants: {students}."],
    "parcel": ["Status: {status}.", "To {receiver}.", "From {sender}.", "City: {city}.", "It contains a {contents}.", "{weight} kg.", "Delivery: {date}."],
    "news": ["Employees: {staff}.", "Founded: {founded}.", "Founders: {founders}.", "City: {city}.", "Boss: {ceo}.", "Product: {product}.", "Date: {date}."],
    "appointment": ["Doctor: {doctor}.", "Date: {date}.", "Time: {time}.", "Patient: {patient}.", "Reason: {reason}.", "Dose: {dose} mg.", "{drug} was given.", "Address: {place}."],
}  # fmt: skip
