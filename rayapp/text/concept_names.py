"""Hebrew given names that the dictionary of words does not hold, or reads as other words.

Written by us. A name that is an everyday word as well (שיר, הגר, חיים) is left out, and so is one
that makes an everyday word behind ל (גבי, לגבי).
"""

from __future__ import annotations

from rayapp.text.hebrew import without_prefixes
from rayapp.text.lemmas import MIN_STEM_LETTERS

_NAMES = """
    אביטל אהרון אוריאל אורנה אחמד איילה אילנה אירנה אלונה אלירן אלכס אלנה אמיר אמילי אנסטסיה
    אולגה אפרת אריק בוריס ברוריה בתיה גלית דותן דליה דמיטרי דנה דניאלה דקלה ולדימיר חגית חנה
    חננאל טליה יאיר יבגני יוליה יוסוף יותם יפית יפעת כרמית כרמלה ליאל ליאם ליאן ליאת לידור לילך
    לימור לינוי ליעד לירון לירז מאיה מחמוד מיטל מרינה נופר נטלי נטשה נירית נתנאל סבטלנה סיגלית
    סרגיי עופרה עידו עינב עינת עמיחי עמליה עמרי ענת פאולינה פאטמה פיליפ צביקה צחי צילה קובי רונה
    רוני רונית רותי שגיא שגיב שגית שיראל שירית שירלי שירן שלומית שרית תומר תמי תמרה
"""
NAMES = frozenset(_NAMES.split())


def name_in(word: str, *, known: bool) -> str | None:
    """The name that `word` is, alone or behind particles; None when it is none.

    Args:
        known: the dictionary holds `word` as it stands. Behind ל it is the name all the same
            (לדנה); other particles make everyday words of names (מנועה).
    """
    if word in NAMES:
        return word
    if known and word[0] != "ל":
        return None
    return next((rest for rest in without_prefixes(word, MIN_STEM_LETTERS) if rest in NAMES), None)
