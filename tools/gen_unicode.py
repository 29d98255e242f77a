"""Writes src/guideway/frontends/regex/unicode.txt: Unicode properties by name, case folding, and IDNA's classes.

Node's regular expressions under the flag u supply properties and foldings, character by character; `unicodedata`
supplies those for which node has no name. Run `python tools/gen_unicode.py` with node on the path after a new Unicode
version. The file contains the versions of its sources.

A line of the file: names joined by `=`, a colon, then ranges: in base 36 how many characters are skipped, and after a
comma how many more follow the first one.
"""

from __future__ import annotations

import json
import subprocess
import unicodedata
from pathlib import Path

FILE = Path(__file__).parents[1] / "src/guideway/frontends/regex/unicode.txt"

CATEGORIES = """Lu=Uppercase_Letter Ll=Lowercase_Letter Lt=Titlecase_Letter Lm=Modifier_Letter Lo=Other_Letter
Mn=Nonspacing_Mark Mc=Spacing_Mark Me=Enclosing_Mark Nd=Decimal_Number=digit Nl=Letter_Number No=Other_Number
Pc=Connector_Punctuation Pd=Dash_Punctuation Ps=Open_Punctuation Pe=Close_Punctuation Pi=Initial_Punctuation
Pf=Final_Punctuation Po=Other_Punctuation Sm=Math_Symbol Sc=Currency_Symbol Sk=Modifier_Symbol So=Other_Symbol
Zs=Space_Separator Zl=Line_Separator Zp=Paragraph_Separator Cc=Control=cntrl Cf=Format Co=Private_Use"""

BINARY = """ASCII_Hex_Digit=AHex Alphabetic=Alpha Bidi_Control=Bidi_C Bidi_Mirrored=Bidi_M Case_Ignorable=CI Cased
Changes_When_Casefolded=CWCF Changes_When_Casemapped=CWCM Changes_When_Lowercased=CWL
Changes_When_NFKC_Casefolded=CWKCF Changes_When_Titlecased=CWT Changes_When_Uppercased=CWU Dash
Default_Ignorable_Code_Point=DI Deprecated=Dep Diacritic=Dia Emoji Emoji_Component=EComp Emoji_Modifier=EMod
Emoji_Modifier_Base=EBase Emoji_Presentation=EPres Extended_Pictographic=ExtPict Extender=Ext Grapheme_Base=Gr_Base
Grapheme_Extend=Gr_Ext Hex_Digit=Hex IDS_Binary_Operator=IDSB IDS_Trinary_Operator=IDST ID_Continue=IDC ID_Start=IDS
Ideographic=Ideo Join_Control=Join_C Logical_Order_Exception=LOE Lowercase=Lower Math Noncharacter_Code_Point=NChar
Pattern_Syntax=Pat_Syn Pattern_White_Space=Pat_WS Quotation_Mark=QMark Radical Regional_Indicator=RI
Sentence_Terminal=STerm Soft_Dotted=SD Terminal_Punctuation=Term Unified_Ideograph=UIdeo Uppercase=Upper
Variation_Selector=VS White_Space=space XID_Continue=XIDC XID_Start=XIDS"""

SCRIPTS = """Adlam=Adlm Ahom Anatolian_Hieroglyphs=Hluw Arabic=Arab Armenian=Armn Avestan=Avst Balinese=Bali Bamum=Bamu
Bassa_Vah=Bass Batak=Batk Bengali=Beng Beria_Erfe=Berf Bhaiksuki=Bhks Bopomofo=Bopo Brahmi=Brah Braille=Brai
Buginese=Bugi Buhid=Buhd Canadian_Aboriginal=Cans Carian=Cari Caucasian_Albanian=Aghb Chakma=Cakm Cham
Cherokee=Cher Chorasmian=Chrs Common=Zyyy Coptic=Copt=Qaac Cuneiform=Xsux Cypriot=Cprt Cypro_Minoan=Cpmn
Cyrillic=Cyrl Deseret=Dsrt Devanagari=Deva Dives_Akuru=Diak Dogra=Dogr Duployan=Dupl Egyptian_Hieroglyphs=Egyp
Elbasan=Elba Elymaic=Elym Ethiopic=Ethi Garay=Gara Georgian=Geor Glagolitic=Glag Gothic=Goth Grantha=Gran
Greek=Grek Gujarati=Gujr Gunjala_Gondi=Gong Gurmukhi=Guru Gurung_Khema=Gukh Han=Hani Hangul=Hang
Hanifi_Rohingya=Rohg Hanunoo=Hano Hatran=Hatr Hebrew=Hebr Hiragana=Hira Imperial_Aramaic=Armi
Inherited=Qaai=Zinh Inscriptional_Pahlavi=Phli Inscriptional_Parthian=Prti Javanese=Java Kaithi=Kthi
Kannada=Knda Katakana=Kana Kawi Kayah_Li=Kali Kharoshthi=Khar Khitan_Small_Script=Kits Khmer=Khmr Khojki=Khoj
Khudawadi=Sind Kirat_Rai=Krai Lao=Laoo Latin=Latn Lepcha=Lepc Limbu=Limb Linear_A=Lina Linear_B=Linb Lisu
Lycian=Lyci Lydian=Lydi Mahajani=Mahj Makasar=Maka Malayalam=Mlym Mandaic=Mand Manichaean=Mani Marchen=Marc
Masaram_Gondi=Gonm Medefaidrin=Medf Meetei_Mayek=Mtei Mende_Kikakui=Mend Meroitic_Cursive=Merc
Meroitic_Hieroglyphs=Mero Miao=Plrd Modi Mongolian=Mong Mro=Mroo Multani=Mult Myanmar=Mymr Nabataean=Nbat
Nag_Mundari=Nagm Nandinagari=Nand New_Tai_Lue=Talu Newa Nko=Nkoo Nushu=Nshu Nyiakeng_Puachue_Hmong=Hmnp
Ogham=Ogam Ol_Chiki=Olck Ol_Onal=Onao Old_Hungarian=Hung Old_Italic=Ital Old_North_Arabian=Narb Old_Permic=Perm
Old_Persian=Xpeo Old_Sogdian=Sogo Old_South_Arabian=Sarb Old_Turkic=Orkh Old_Uyghur=Ougr Oriya=Orya Osage=Osge
Osmanya=Osma Pahawh_Hmong=Hmng Palmyrene=Palm Pau_Cin_Hau=Pauc Phags_Pa=Phag Phoenician=Phnx
Psalter_Pahlavi=Phlp Rejang=Rjng Runic=Runr Samaritan=Samr Saurashtra=Saur Sharada=Shrd Shavian=Shaw
Siddham=Sidd Sidetic=Sidt SignWriting=Sgnw Sinhala=Sinh Sogdian=Sogd Sora_Sompeng=Sora Soyombo=Soyo
Sundanese=Sund Sunuwar=Sunu Syloti_Nagri=Sylo Syriac=Syrc Tagalog=Tglg Tagbanwa=Tagb Tai_Le=Tale Tai_Tham=Lana
Tai_Viet=Tavt Tai_Yo=Tayo Takri=Takr Tamil=Taml Tangsa=Tnsa Tangut=Tang Telugu=Telu Thaana=Thaa Thai
Tibetan=Tibt Tifinagh=Tfng Tirhuta=Tirh Todhri=Todr Tolong_Siki=Tols Toto Tulu_Tigalari=Tutg Ugaritic=Ugar
Vai=Vaii Vithkuqi=Vith Wancho=Wcho Warang_Citi=Wara Yezidi=Yezi Yi=Yiii Zanabazar_Square=Zanb"""

NODE = r"""
const tests = JSON.parse(require('fs').readFileSync(0)).map(p => new RegExp(`^\\p{${p}}$`, 'u'));
const made = tests.map(() => []);
const cased = /[\p{CWCM}\p{CWCF}]/u, folded = [];
for (let c = 0; c < 0x110000; c++) {
  if (c >= 0xd800 && c < 0xe000) continue;
  const s = String.fromCodePoint(c);
  if (cased.test(s)) folded.push(s);
  tests.forEach((t, i) => {
    if (!t.test(s)) return;
    const last = made[i][made[i].length - 1];
    if (last && last[1] === c - 1) last[1] = c; else made[i].push([c, c]);
  });
}
const all = folded.join('');
const orbits = folded.map(s => all.match(new RegExp(s, 'giu')).join('')).filter(o => [...o].length > 1);
const version = process.versions.unicode;
process.stdout.write(JSON.stringify({ made, orbits: [...new Set(orbits)], version }));
"""

Ranges = list[tuple[int, int]]


def line(names: str, ranges: Ranges) -> str:
    """One line of the file."""
    words, at = [], 0
    for low, high in ranges:
        words.append(base36(low - at) + (f",{base36(high - low)}" if high > low else ""))
        at = high + 1
    return f"{names}:{' '.join(words)}\n"


def base36(number: int) -> str:
    """In digits 0-9a-z."""
    made = ""
    while True:
        number, digit = divmod(number, 36)
        made = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + made
        if not number:
            return made


def ranges_of(codes: list[int]) -> Ranges:
    """Sorted code points as ranges."""
    made: Ranges = []
    for code in codes:
        if made and made[-1][1] == code - 1:
            made[-1] = (made[-1][0], code)
        else:
            made.append((code, code))
    return made


# RFC 5892, section 2.6: exceptions.
PVALID = {0xDF, 0x3C2, 0x6FD, 0x6FE, 0xF0B, 0x3007}
CONTEXT = {0xB7, 0x375, 0x5F3, 0x5F4, 0x30FB, 0x200C, 0x200D, *range(0x660, 0x66A), *range(0x6F0, 0x6FA)}
DISALLOWED = {0x640, 0x7FA, 0x302E, 0x302F, *range(0x3031, 0x3036), 0x303B}


def idna() -> dict[str, Ranges]:
    """Returns the characters that RFC 5892 allows in labels in any context, and classes of RFC 5893."""
    allowed, left, right = [], [], []
    arabic, neutral, marks, viramas, leading = [], [], [], [], []
    for code in range(0x110000):
        char = chr(code)
        if unicodedata.combining(char) == 9:
            viramas.append(code)
        if code not in PVALID and (code in CONTEXT or not pvalid(code, char)):
            continue
        allowed.append(code)
        if unicodedata.category(char)[0] == "M":
            leading.append(code)
        kind = unicodedata.bidirectional(char)
        if kind == "L":
            left.append(code)
        elif kind in ("R", "AL"):
            right.append(code)
        elif kind == "AN":
            arabic.append(code)
        elif kind == "NSM":
            marks.append(code)
        else:
            neutral.append(code)
    found = {"allowed": allowed, "L": left, "R": right, "AN": arabic, "other": neutral, "NSM": marks}
    found |= {"virama": viramas, "mark": leading}
    return {f"idna {name}": ranges_of(codes) for name, codes in found.items()}


def pvalid(code: int, char: str) -> bool:
    """RFC 5892, section 3, without exceptions."""
    if code in DISALLOWED or unicodedata.category(char) not in ("Ll", "Lu", "Lo", "Nd", "Lm", "Mn", "Mc"):
        return char == "-"
    normal = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", char).casefold())
    if unicodedata.normalize("NFKC", normal) != char:
        return False
    jamo = 0x1100 <= code <= 0x11FF or 0xA960 <= code <= 0xA97F or 0xD7B0 <= code <= 0xD7FF
    ignorable = code in (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0) or 0x180B <= code <= 0x180F
    ignorable = ignorable or 0xFE00 <= code <= 0xFE0F or 0xE0000 <= code <= 0xE0FFF
    blocks = 0x20D0 <= code <= 0x20FF or 0x1D100 <= code <= 0x1D24F
    return not (jamo or ignorable or blocks)


def main() -> None:
    """Write the file."""
    names = [*(f"General_Category {n}" for n in CATEGORIES.split()), *BINARY.split()]
    names += [f"{kind} {n}" for kind in ("Script", "Script_Extensions") for n in SCRIPTS.split()]
    asked = [name.split("=")[0].replace(" ", "=") for name in names]
    output = subprocess.run(["node", "-e", NODE], input=json.dumps(asked), capture_output=True, text=True, check=True)
    answer = json.loads(output.stdout)
    lines = [
        f"# Made by tools/gen_unicode.py from Unicode {answer['version']} (idna: {unicodedata.unidata_version}).\n"
    ]
    lines += [line(name, ranges) for name, ranges in zip(names, answer["made"], strict=True)]
    lines += [line(name, ranges) for name, ranges in idna().items()]
    lines.append(f"orbits:{' '.join('-'.join(base36(ord(c)) for c in orbit) for orbit in answer['orbits'])}\n")
    FILE.write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main()
