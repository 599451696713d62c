"""Words of both languages that make no fact: talk, and who a fact is about. Written by us."""

from __future__ import annotations

from rayapp.learning.rules.dedup import content_words

# A line of these alone only makes conversation.
_TALK = """
    hello hi hey bye goodbye thank thanks thankful grateful welcome please sorry great good nice
    fine okay ok perfect awesome cool sure morning evening night day greet greets greeted greeting
    say says said user assistant happy glad satisfied appreciate appreciates appreciated help
    helped helping answer response reply conversation chat session well today polite
    שלום היי הי ביי להתראות תודה תודות בבקשה סליחה מצוין מעולה נהדר יופי טוב טובה טובים בסדר סבבה
    אחלה בוקר ערב לילה יום אמר אמרה אומר אומרת משתמש משתמשת המשתמש המשתמשת עוזר העוזר ברך בירך
    בירכה מברך שמח שמחה מרוצה הודה הודתה מודה עזרה עזר תשובה התשובה שיחה השיחה היום מנומס
"""
# A line adds these to say whose fact it is: they need not stand in the exchange.
_SUBJECTS = """
    user user's users person speaker he she they his her their i my me name named called
    prefer prefers preference favorite favourite live lives work works
    משתמש המשתמש משתמשת המשתמשת לקוח הלקוח הוא היא שלו שלה שמו שמה שם מעדיף מעדיפה גר גרה עובד עובדת
"""


def _with_lemmas(words: str) -> frozenset[str]:
    listed = frozenset(words.split())
    return listed | {lemma for word in listed for lemma in content_words(word)}


TALK = _with_lemmas(_TALK)
SUBJECTS = _with_lemmas(_SUBJECTS)
