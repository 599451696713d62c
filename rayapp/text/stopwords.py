"""Function words of both languages: they carry no topic. Written by us, normalised spelling."""

from __future__ import annotations

# "like" is left out: what someone likes is what a memory is about.
_ENGLISH = """
    a about after again all also am an and any are as at be because been before being both but by
    can could did do does doing done during each few for from further get got had has have having
    he her here hers him his how i if in into is it its just me more most my no nor not now of off
    on once only or other our out over she should so some such than that the their them then there
    these they this those through to too under until up us very was we were what when where which
    while who whom why will with would yes you your yours
    don't doesn't didn't isn't aren't wasn't weren't won't can't couldn't wouldn't shouldn't
    haven't hasn't hadn't i'm i've i'll i'd you're you've you'll it's that's what's there's he's
    she's we're we've they're they've let's
"""
# שם (name, there) and בנו (his son, in us) are left out: they are topics as often as not.
_HEBREW = """
    את אל על של עם מן כי אם או גם רק אך אבל אלא לא אין יש זה זו זאת אלה אלו הוא היא הם הן אני
    אתה אנחנו אתם אתן שלי שלך שלו שלה שלנו שלכם שלהם לי לך לו לה לנו לכם להם להן בי בך בו בה בהם
    בהן אותי אותך אותו אותה אותנו אותם אותן מה מי איפה היכן מתי איך כיצד למה מדוע כמה איזה איזו
    אילו האם מהו מהי מהם מיהו מיהי כל כמו כן כך כאן פה עוד מאוד יותר פחות אחרי לפני בין תחת מול
    אצל ליד לפי בלי ללא עד אז כבר היה היתה הייתה היו להיות יהיה תהיה יהיו אשר כאשר כש ש ה ו ב ל
    מ כ בשל אודות לגבי בגלל כדי שבו שבה שהוא שהיא שהם שלא ולא שזה וגם ואת ועל
"""
STOP_WORDS = frozenset(_ENGLISH.split()) | frozenset(_HEBREW.split())
