# ruff: noqa: SIM905  # words and forms are written in rows; one to a line, they would fill a thousand lines
"""Words, names and places: lists, and syllables put together for the endless rest.

A model of three million parameters learns to copy only if it cannot memorise the values, so about half of all values
are composed. Every word belongs to one split, which a hash of its text selects: training never contains a word of the
evaluation, and no second list is necessary.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable

EVAL_SHARE = 8  # one word in eight is kept for evaluation

FIRST = """Anna Maria Lena Sofia Emma Olivia Mia Clara Greta Ingrid Astrid Freya Nadia Yasmin Leila Fatima Aisha Priya
Anjali Deepa Mei Yuki Hana Sakura Linh Thi Chiara Giulia Elena Carmen Lucia Ines Beatriz Camille Elodie Margot Zoe
Chloe Ruth Esther Judith Naomi Rosa Teresa Agnes Hilda Irma Olga Tatiana Svetlana Katya Daria Milena Petra Jana Eva
Zuzana Agata Ewa Kinga Noor Sanne Femke Anouk Marit Solveig Aino Helmi Kaisa Amara Chioma Ngozi Wanjiru Zola Thandi
Peter Paul John James William Henry George Thomas Robert Edward Oscar Felix Max Jonas Lukas Finn Emil Anton Otto Karl
Hans Klaus Dieter Jürgen Björn Lars Sven Nils Erik Olaf Magnus Mikko Juhani Omar Ali Hassan Karim Tariq Yusuf Ibrahim
Arjun Rohan Vikram Sanjay Ravi Kenji Hiroshi Takashi Wei Jun Minh Tuan Marco Luca Matteo Paolo Carlos Diego Javier
Pablo Miguel Joao Tiago Pierre Louis Antoine Hugo Theo Samuel David Daniel Isaac Jacob Ivan Dmitri Sergei Boris
Pavel Tomas Marek Piotr Jakub Daan Bram Kofi Kwame Chidi Emeka Tendai Sipho Liam Noah Owen Rhys Callum Angus Grace Lily
Kate Jane Mary Sarah Laura Julia Helen Nina Tina Eve Ben Tom Sam Joe Dan Max Nick Rick Walter Frank Gloria Peggy""".split()

LAST = """Müller Schmidt Weber Fischer Becker Hoffmann Koch Richter Wolf Braun Krüger Hartmann Lange Vogel Berger Smith
Jones Brown Taylor Wilson Davies Evans Walker Wright Hughes Green Hall Wood Clarke Turner Hill Cooper Ward Murphy
Kelly Byrne Ryan OBrien Campbell Stewart Fraser Garcia Martinez Lopez Gonzalez Perez Sanchez Romero Torres Ramirez
Silva Santos Costa Pereira Almeida Rossi Bianchi Ferrari Romano Ricci Conti Martin Bernard Dubois Laurent Moreau
Lefevre Girard Jansen Bakker Visser Smit Meijer Mulder Larsen Hansen Nielsen Johansen Lindgren Nilsson Berg Virtanen
Korhonen Laine Nowak Kowalski Wisniewski Novak Svoboda Horvat Kovac Petrov Ivanov Volkov Popov Sato Suzuki Tanaka
Yamamoto Nakamura Kim Park Choi Chen Wang Zhang Liu Huang Nguyen Tran Patel Sharma Gupta Singh Reddy Khan Ahmed
Rahman Haddad Mansour Okafor Adeyemi Mensah Mwangi Dlamini Nkosi Cohen Levy Katz Papadopoulos Yilmaz Demir Kaya
Stone Marsh Reed Brook Field Ford Shaw West North Bishop King Carter Mason Baker Fletcher Archer Potter Thorne""".split()

PLACES = """Berlin Hamburg Munich Cologne Leipzig Dresden Vienna Graz Zurich Basel Geneva Paris Lyon Nantes Lille Nice
Madrid Seville Valencia Bilbao Lisbon Porto Rome Milan Turin Naples Florence Venice Athens Oslo Bergen Stockholm
Gothenburg Malmö Copenhagen Aarhus Helsinki Tampere Tallinn Riga Vilnius Warsaw Gdansk Prague Brno Budapest Dublin
Cork Galway Manchester Leeds Bristol Cardiff Glasgow Edinburgh Aberdeen Oxford York Bath Utrecht Rotterdam Ghent
Antwerp Brussels Tokyo Osaka Kyoto Seoul Busan Beijing Shanghai Taipei Hanoi Bangkok Manila Jakarta Mumbai Delhi
Chennai Pune Karachi Dhaka Cairo Tunis Lagos Accra Nairobi Kampala Durban Boston Chicago Denver Seattle Austin
Houston Dallas Atlanta Miami Detroit Portland Toronto Montreal Ottawa Vancouver Lima Quito Santiago Cordoba Rosario
Sydney Perth Hobart Auckland Wellington Ankara Izmir Haifa Amman Doha Muscat""".split()

JOBS = """teacher nurse doctor engineer lawyer plumber carpenter electrician baker butcher chef waiter pilot
architect painter sculptor photographer journalist editor writer poet translator librarian historian biologist chemist
physicist geologist astronomer statistician economist accountant banker cashier clerk secretary manager director
consultant analyst programmer developer designer tester administrator technician mechanic welder driver courier farmer
gardener florist fisherman sailor captain soldier officer detective judge notary pharmacist dentist surgeon midwife
psychologist therapist vet professor lecturer student researcher musician pianist violinist singer composer dancer actor
producer barber hairdresser tailor shoemaker jeweller potter glazier mason roofer miner blacksmith locksmith surveyor
botanist zoologist linguist philosopher curator archivist receptionist salesman auctioneer broker referee coach
cyclist footballer swimmer boxer beekeeper brewer winemaker cartographer firefighter paramedic lifeguard""".split()

JOB_PREFIX = """senior junior assistant chief head freelance retired trainee night school data software civil
marine family research court ship garden sound""".split()

NOUNS = """lamp chair table desk shelf sofa carpet mirror clock kettle toaster bicycle helmet tent backpack suitcase
umbrella jacket coat scarf sweater shirt boots sandals hat gloves watch ring necklace camera lens tripod laptop monitor
keyboard mouse printer scanner router phone tablet charger cable speaker headphones radio piano guitar violin drum flute
book notebook pen pencil brush canvas hammer drill saw wrench ladder bucket rope shovel rake hose mower barrow pot
pan knife fork spoon plate bowl cup mug glass bottle jar basket blanket pillow mattress curtain towel soap candle
vase frame poster map globe puzzle kite ball racket skis sled canoe paddle anchor engine tyre battery filter pump valve
pipe screw bolt hinge handle lock key door window brick tile plank paint glue tape box crate bag wallet stove oven
fridge freezer heater fan sensor switch cactus fern rose tulip seed apple pear plum cherry lemon bread cheese honey tea
coffee rice flour sugar salt pepper butter egg onion carrot potato tomato garlic ginger bean lentil soup""".split()

ADJECTIVES = """red blue green yellow black white grey brown orange purple pink silver golden old new small large tiny
huge long short round square heavy light soft hard warm cold dry wet clean quiet loud bright dark deep shallow fast slow
cheap fine plain simple wooden steel brass copper glass paper cotton woollen leather ceramic plastic electric folding
portable vintage modern antique rustic handmade spare double single broken used waterproof wireless digital solar
winter summer spring autumn northern southern eastern western open hidden lost secret silent wild gentle brave""".split()

TOPICS = """music history art science nature physics chemistry poetry painting theatre film dance jazz opera
cooking baking gardening farming sailing fishing climbing running chess bridge robots software hardware security
privacy data maps energy water climate forests rivers oceans birds bees horses trains bridges cities housing health
sleep food bread wine tea stories myths language grammar logic numbers geometry algebra statistics markets trade taxes
law justice peace travel photography pottery weaving knitting glass stone wood metal paper light sound stars planets
rockets volcanoes glaciers deserts islands harbours gardens castles museums libraries schools children memory""".split()

HEADS = """workshop meeting concert lecture festival fair exhibition seminar course talk party dinner reading tour
screening conference hackathon market ceremony gala retreat webinar tournament recital""".split()

_ONSETS = """b br c ch d dr f fl g gl gr h j k kr l m n p pr qu r s sh sl sn st t th tr v w y z b d f g k l m n r s t v
""".split()
_VOWELS = "a e i o u a e i o u a e o ai ea ee ia io oo ou ei au ie ö ü é á ø".split()
_CODAS = ["", "", "", "", "", "", *"n r l s t m n r l nd rt ck ll nn x th sk ng mp st d k g".split()]
_TOWN_ENDS = "burg ville ford ton ham field dorf stad port bury mouth wick stein berg holm by grad minster".split()
_JOB_ENDS = "er ist ian or smith maker wright ologist keeper".split()


def in_split(text: str, split: str) -> bool:
    """Whether a word belongs to ``split`` ("train" or "eval"), by hash."""
    return (zlib.crc32(text.lower().encode()) % EVAL_SHARE == 0) == (split == "eval")


def draw(rng: random.Random, split: str, make: Callable[[random.Random], str]) -> str:
    """Draw from ``make`` until the word belongs to the split."""
    while not in_split(word := make(rng), split):
        pass
    return word


def syllables(rng: random.Random, low: int = 1, high: int = 3) -> str:
    count = rng.randint(low, high)
    parts = []
    for index in range(count):
        onset = "" if index == 0 and rng.random() < 0.15 else rng.choice(_ONSETS)
        vowel = rng.choice(_VOWELS[:-5]) if rng.random() < 0.93 else rng.choice(_VOWELS)
        parts.append(onset + vowel + (rng.choice(_CODAS) if rng.random() < 0.6 or index == count - 1 else ""))
    return "".join(parts)


def invented(rng: random.Random, split: str, low: int = 1, high: int = 3) -> str:
    """Returns a lower-case word that is in no list."""
    return draw(rng, split, lambda r: syllables(r, low, high))


def listed(rng: random.Random, split: str, words: list[str]) -> str:
    return draw(rng, split, lambda r: r.choice(words))


def mixed(rng: random.Random, split: str, words: list[str], listed_share: float = 0.5) -> str:
    """A capitalised word, from the list or invented."""
    if rng.random() < listed_share:
        return listed(rng, split, words)
    return invented(rng, split, 1, 3).capitalize()


def first_name(rng: random.Random, split: str) -> str:
    name = mixed(rng, split, FIRST)
    if rng.random() < 0.04:
        name += "-" + mixed(rng, split, FIRST)
    return name


def last_name(rng: random.Random, split: str) -> str:
    name = mixed(rng, split, LAST)
    roll = rng.random()
    if roll < 0.03:
        return name + "-" + mixed(rng, split, LAST)
    if roll < 0.06:
        return rng.choice(["van ", "de ", "von ", "O'", "Mc", "al-", "della ", "van der "]) + name
    return name


def person(rng: random.Random, split: str) -> str:
    first, last = first_name(rng, split), last_name(rng, split)
    roll = rng.random()
    if roll < 0.05:
        return f"{first} {rng.choice('ABCDEFGHJKLMNPRSTVW')}. {last}"
    if roll < 0.1:
        return f"{first} {first_name(rng, split)} {last}"
    return f"{first} {last}"


def place(rng: random.Random, split: str) -> str:
    roll = rng.random()
    if roll < 0.4:
        return listed(rng, split, PLACES)
    name = invented(rng, split, 1, 3).capitalize()
    if roll < 0.6:
        return invented(rng, split, 1, 2).capitalize() + rng.choice(_TOWN_ENDS)
    if roll < 0.7:
        return (
            rng.choice(["San", "Port", "New", "Saint", "Bad", "Upper", "El", "Los", "Fort", "Lake", "North"])
            + " "
            + name
        )
    return name


def job(rng: random.Random, split: str) -> str:
    name = listed(rng, split, JOBS)
    if rng.random() < 0.35:
        name = invented(rng, split, 1, 3) + rng.choice(_JOB_ENDS)
    return f"{rng.choice(JOB_PREFIX)} {name}" if rng.random() < 0.2 else name


def noun(rng: random.Random, split: str) -> str:
    return listed(rng, split, NOUNS) if rng.random() < 0.65 else invented(rng, split, 1, 3)


def thing(rng: random.Random, split: str) -> str:
    """A product in a few lower-case words, or a brand with a model."""
    roll = rng.random()
    if roll < 0.3:
        return noun(rng, split)
    if roll < 0.62:
        return f"{rng.choice(ADJECTIVES)} {noun(rng, split)}"
    if roll < 0.7:
        return f"{noun(rng, split)} {noun(rng, split)}"
    if roll < 0.76:
        return f"{rng.choice(ADJECTIVES)} {rng.choice(ADJECTIVES)} {noun(rng, split)}"
    brand = invented(rng, split, 1, 3).capitalize()
    if roll < 0.86:
        return f"{brand} {noun(rng, split)}"
    return f"{brand} {rng.choice(['', 'X', 'Pro', 'M', 'S', 'Mk', 'GT', 'Mini'])}{rng.randint(1, 9990)}"


def plural(rng: random.Random, split: str) -> str:
    word = thing(rng, split)
    return word if word[-1].isdigit() or word.endswith("s") else word + "s"


def company(rng: random.Random, split: str) -> str:
    name = mixed(rng, split, LAST, 0.25)
    roll = rng.random()
    if roll < 0.3:
        return name
    if roll < 0.7:
        end = "Ltd|GmbH|Inc|AG|Group|Labs|Systems|Foods|Bank|Energy|Logistics|Media|Partners|Motors|Works".split("|")
        return f"{name} {rng.choice(end)}"
    if roll < 0.85:
        return f"{name} & {rng.choice(['Sons', 'Co', mixed(rng, split, LAST)])}"
    return (
        f"{rng.choice(ADJECTIVES).capitalize()} {noun(rng, split).capitalize()} {rng.choice(['Ltd', 'Co', 'Studio'])}"
    )


def title(rng: random.Random, split: str) -> str:
    """A title of two to five words."""
    a, n = rng.choice(ADJECTIVES).capitalize(), noun(rng, split).capitalize()
    topic, head = listed(rng, split, TOPICS), rng.choice(HEADS)
    strange = invented(rng, split, 2, 3).capitalize()
    forms = [
        f"The {a} {n}", f"{a} {n}s", f"{topic.capitalize()} and {listed(rng, split, TOPICS)}", f"Introduction to {topic}",
        f"{topic.capitalize()} {head}", f"{topic.capitalize()} for beginners", f"{a} {topic.capitalize()} {head.capitalize()}",
        f"The {n} of {strange}", f"{strange} {head}", f"{strange}", f"{topic.capitalize()} Night", f"The Future of {topic.capitalize()}",
        f"{strange} {topic.capitalize()} {head.capitalize()}", f"How to love {topic}", f"A {n} in {strange}",
    ]  # fmt: skip
    return rng.choice(forms)


def venue(rng: random.Random, split: str) -> str:
    name = mixed(rng, split, LAST, 0.3)
    forms = [
        f"{name} Hall", f"Room {rng.randint(1, 990)}", f"the {name} Theatre", f"Hotel {name}", f"{name} Park", f"Café {name}",
        f"the {noun(rng, split)} museum", "the town hall", f"{name} Library", f"Hall {rng.choice('ABCDEFG')}",
        f"{name} House", f"the old {noun(rng, split)} factory", f"{name} Centre", f"Studio {rng.randint(1, 40)}",
    ]  # fmt: skip
    return rng.choice(forms)


def street(rng: random.Random, split: str) -> str:
    name = mixed(rng, split, LAST + NOUNS, 0.4).capitalize()
    number = rng.randint(1, 240)
    if rng.random() < 0.4:
        return f"{name}{rng.choice(['straße', 'weg', 'gasse', 'gade', 'laan'])} {number}"
    return f"{number} {name} {rng.choice(['Street', 'Road', 'Lane', 'Avenue', 'Way', 'Close', 'Square'])}"


def email(rng: random.Random, split: str) -> str:
    first, last = first_name(rng, split).lower(), last_name(rng, split).lower().replace(" ", "")
    user = rng.choice(
        [f"{first}.{last}", first, last, f"{first[0]}.{last}", f"{first}{rng.randint(1, 99)}", f"{first}_{last}"]
    )
    host = invented(rng, split, 1, 3) + rng.choice(
        [".com", ".org", ".net", ".example", ".de", ".co.uk", ".io", ".eu", ".fr"]
    )
    return f"{user.replace(chr(39), '')}@{host}"


def phone(rng: random.Random) -> str:
    def digits(count: int) -> str:
        return "".join(rng.choice("0123456789") for _ in range(count))

    forms = [
        f"+{rng.randint(1, 99)} {digits(3)} {digits(rng.randint(4, 7))}", f"0{digits(3)} {digits(6)}", f"555-{digits(4)}",
        f"({digits(3)}) {digits(3)}-{digits(4)}", f"0{digits(2)}/{digits(6)}", f"{digits(3)}-{digits(3)}-{digits(4)}",
        f"0{digits(3)} {digits(3)} {digits(3)}",
    ]  # fmt: skip
    return rng.choice(forms)


def code(rng: random.Random) -> str:
    """An identifier: letters and digits in the usual arrangements."""

    def letters(count: int) -> str:
        return "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(count))

    number = rng.randint(1, 10 ** rng.randint(2, 6))
    forms = [
        f"{letters(rng.randint(1, 3))}-{number}", f"{letters(2)}{number}", f"{number}-{letters(1)}", f"#{number}",
        f"{letters(1)}{rng.randint(1, 99)}/{rng.randint(1, 999)}", f"{letters(3)}-{rng.randint(2000, 2039)}-{rng.randint(1, 999)}",
        f"{number:05d}", f"{letters(2)}-{number:04d}",
    ]  # fmt: skip
    return rng.choice(forms)
