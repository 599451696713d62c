"""What went wrong, in Hebrew: one sentence per code, for callers that ask for it.

The English sentence names the very value; this one says what to do, and the English one stands
beside it (`message_en`). English is the default, and stays as it is.
"""

from collections.abc import Mapping
from contextvars import ContextVar

# Whether the request that is answered asks for Hebrew.
wants_hebrew: ContextVar[bool] = ContextVar("wants_hebrew", default=False)

SENTENCES: Mapping[str, str] = {
    "invalid_input": "שדה בבקשה מפר כלל; יש לתקן אותו ולשלוח שוב.",
    "too_large": "הבקשה, הטקסט או האצווה גדולים מן המותר; יש לשלוח פחות.",
    "unauthorized": "אין מפתח API, או שהמפתח אינו מוכר; יש לשלוח מפתח תקף.",
    "forbidden": "למפתח אין ההרשאה הדרושה, או שהמשתמש או המארח אינם מורשים.",
    "not_found": "הפריט אינו קיים, או שאינו שלך.",
    "conflict": "מצב הזיכרון אינו מאפשר זאת; יש לקרוא אותו שוב.",
    "duplicate_memory": "זיכרון פעיל זהה כבר קיים; המזהה שלו בפרטים.",
    "bank_full": "בנק הזיכרון מלא בעובדות מועילות יותר או מוצמדות; דבר לא נשמר. "
    "יש להעביר אחת מהן לארכיון.",
    "version_conflict": "הזיכרון השתנה מאז שנקרא; יש לקרוא אותו שוב.",
    "idempotency_conflict": "המפתח שימש לבקשה אחרת, או שבקשתו עדיין בעבודה; יש לשלוח מפתח אחר.",
    "rate_limited": "יותר מדי בקשות; יש להמתין כפי שאומרת הכותרת Retry-After.",
    "overloaded": "השירות עמוס; יש להמתין כפי שאומרת הכותרת Retry-After ולנסות שוב.",
    "deadline_exceeded": "הזמן שהוקצב לבקשה נגמר; יש לנסות שוב.",
    "bad_vector": "מודל ההטמעה החזיר וקטור שאין בו שימוש; יש לנסות שוב או לבדוק את המודל.",
    "schema_mismatch": "האינדקס נבנה למודל אחר; יש להריץ reindex.",
    "dependency_down": "שרת שהשירות נשען עליו אינו זמין; יש לנסות שוב.",
    "store_down": "מסד הנתונים אינו זמין; יש לנסות שוב.",
    "disk_full": "הדיסק מלא: דבר לא נשמר, והקריאה ממשיכה. יש לפנות מקום.",
    "index_down": "אינדקס הווקטורים אינו זמין; יש לנסות שוב.",
    "embedder_down": "מודל ההטמעה אינו זמין; יש לנסות שוב.",
    "reranker_down": "מודל הדירוג אינו זמין; יש לנסות שוב.",
    "cache_down": "המטמון אינו זמין; יש לנסות שוב.",
    "jobs_down": "האשכול אינו מקבל עבודות כעת; יש לנסות שוב.",
    "model_down": "מודל השפה אינו זמין; יש לבדוק את ההגדרות models או לנסות שוב.",
    "config": "השירות מוגדר בצורה שגויה; יש לעיין ביומן שלו.",
    "error": "אירעה שגיאה; יש לעיין ביומן.",
    "malformed_json": "גוף הבקשה אינו JSON, או אינו אובייקט JSON.",
    "unsupported_media_type": "גוף הבקשה דורש את הכותרת Content-Type: application/json.",
    "route_not_found": "אין נתיב כזה; הרשימה ב-/docs.",
    "method_not_allowed": "הנתיב קיים, אך לא בשיטה הזאת; ראו את הכותרת Allow.",
    "slow_body": "גוף הבקשה לא הגיע בזמן; יש לשלוח אותו שוב.",
    "http_error": "הבקשה אינה מובנת.",
    "host_not_allowed": "Host או Origin אינם ברשימת המורשים.",
    "other_user": "המפתח שייך למשתמש אחר מזה שבכותרת X-User-Id.",
    "starting": "השירות עדיין עולה; יש לנסות שוב.",
    "bad_user_id": "בכותרת X-User-Id יש תווים שאינם מותרים.",
    "bad_job_id": "במזהה העבודה יש תווים שאינם מותרים.",
    "bad_memory_id": "במזהה הזיכרון יש תווים שאינם מותרים.",
    "bad_idempotency_key": "מפתח החזרה הוא בן 1 עד 255 תווי ASCII נראים, בלי רווחים.",
    "control_character": "בטקסט יש תו בקרה או תו חסר; יש להסיר אותו.",
    "empty_text": "הטקסט ריק; יש לכתוב משהו.",
    "read_only_tier": "רובדי DataGov מתמלאים רק בעבודה שלהם.",
    "bad_tag": "תגית ריקה או ארוכה מדי.",
    "bad_entity": "שם ישות ריק או ארוך מדי.",
    "too_many_tag": "יותר מדי תגיות.",
    "too_many_entity": "יותר מדי ישויות.",
    "bad_topic": "נושא ריק או ארוך מדי.",
    "too_many_topic": "יותר מדי נושאים.",
    "nothing_to_undo": "אין החלטה לבטל כאן.",
    "sources_gone": "המקורות של זה כבר אינם, ולכן אי אפשר להחזיר אותו.",
    "understanding_off": "ההבנה כבויה כאן; יש להפעיל את understanding.enabled או לשמור ב-/store.",
    "reserved_name": "שם של שדה במקור מתחיל ב-$; יש לתת לו שם אחר.",
    "bad_importance": "importance צריך להיות בין 0 ל-1.",
    "bad_confidence": "confidence צריך להיות בין 0 ל-1.",
    "bad_validity": "valid_from מאוחר מ-valid_to.",
    "bad_supersedes": "supersedes אינו מזהה של זיכרון שאפשר להחליף.",
    "already_superseded": "זיכרון אחר כבר החליף אותו.",
    "already_merged": "הצומת כבר חלק מצומת אחר; יש לבטל קודם את המיזוג ההוא.",
    "already_decided": "כבר הוחלט על ההצעה; יש לבטל קודם את ההחלטה.",
    "too_many_statements": "נאמר על הצמתים יותר ממה שמיזוג אחד מעביר; יש לפצל אותם קודם.",
    "too_many_webhooks": "יש כבר כמספר המרבי של webhooks; יש למחוק אחד מהם קודם.",
    "not_indexed": "לזיכרון אין עדיין וקטור, או שהוא כבר בארכיון; נסו שוב.",
    "bad_always_inject": "always_inject מיועד ל-memory_bank בלבד.",
    "bank_no_tags": "בנק הזיכרון דורש תגית.",
    "bank_no_quality": "בנק הזיכרון דורש חשיבות וביטחון.",
    "merged": "הזיכרון מוזג לתוך אחר; אפשר לפנות אל האחר.",
    "bank_raw_exchange": "בנק הזיכרון שומר עובדות ולא שיחות שלמות.",
    "duplicate": "המסמך כבר כאן, או מסמך באותו שם.",
    "book_not_found": "למשתמש אין מסמך כזה.",
    "chunk_not_found": "במסמך אין קטע כזה.",
    "bad_hash": "טביעת קובץ היא בת 64 ספרות הקסדצימליות.",
    "bad_title": "הכותרת ארוכה מדי, או אינה נראית.",
    "bad_author": "שם המחבר ארוך מדי, או אינו נראה.",
    "malformed_form": "הטופס שעם הקובץ אינו ניתן לקריאה.",
    "document_type": "קובץ מסוג שאינו נקרא, או שאינו תואם את שמו; "
    "יש לשמור אותו בסוג אחר או לתקן את הסיומת.",
    "document_empty": "אין טקסט בקובץ; יש לשלוח קובץ שיש בו טקסט.",
    "document_encrypted": "הקובץ נעול בסיסמה; יש לשלוח אותו פתוח.",
    "document_broken": "הקובץ פגום; יש לפתוח אותו בתוכנה שיצרה אותו, לשמור מחדש ולשלוח שוב.",
    "document_too_slow": "קריאת הקובץ ארכה זמן רב מדי; יש לחלק אותו ולשלוח את החלקים.",
    "document_memory": "קריאת הקובץ דורשת יותר מדי זיכרון; יש לחלק אותו ולשלוח את החלקים.",
    "document_failed": "לא ניתן היה לקלוט את המסמך; יש לשלוח אותו בתבנית אחרת.",
    "upload_gone": "הקובץ שהועלה כבר אינו כאן; יש להעלות אותו שוב.",
    "unknown_tool": "אין כלי בשם הזה; ההודעה באנגלית מונה את הכלים.",
    "ambiguous_memory": "המילים מתאימות לכמה עובדות; יש לשלוח memory_id אחד מאלה שבפרטים.",
    "position_lost": "מזהה האירוע אינו מוכר או ישן מדי; יש להתחיל מחדש.",
    "no_receipt": "לא צוינו זיכרונות, ולא נמצא חיפוש שעוד לא קיבל ציון.",
    "bad_position": "המספר אינו מופיע בתוצאות החיפוש.",
    "window_too_small": "מה שהפרומפט חייב להכיל אינו נכנס לחצי מן החלון.",
    "bad_takeaway": "key_takeaway ריק או ארוך מ-1,000 תווים.",
    "busy": "אותה עבודה כבר מתבצעת; יש לבקש שוב כשתסתיים.",
    "job_starting": "לעבודה עוד אין מפעיל; אפשר להשהות אותה כשתרוץ.",
    "lease_lost": "בעלים אחר קיבל את העבודה וממשיך בה.",
    "job_final": "העבודה הסתיימה; יש להתחיל חדשה.",
    "unknown_action": "המפסקים מכירים את הפעולות reset ו-degraded.",
    "unknown_recipe": "אין מתכון דירוג בשם הזה; ההודעה באנגלית מונה אותם.",
    "embedder_timeout": "מודל ההטמעה לא ענה בזמן; יש לנסות שוב.",
    "reranker_timeout": "מודל הדירוג לא ענה בזמן; יש לנסות שוב.",
    "archived_already": "הזיכרון נמצא בארכיון מסיבה אחרת מהסתרה.",
    "not_hidden": "הזיכרון אינו מוסתר.",
    "not_held": "אין עיכוב על נתוני המשתמש.",
    "legal_hold": "נתוני המשתמש מעוכבים ואינם נמחקים עד שהעיכוב יוסר.",
    "bad_target": "אין מה לנקות בשם הזה; ההודעה באנגלית מונה את האפשרויות.",
    "bad_template": "תבנית האישיות מפרה כלל; ההודעה באנגלית מציינת אותו.",
    "personality_full": "למשתמש כבר יש כל התבניות שמותר; יש למחוק אחת.",
    "windows_full": "כבר הוגדרו חלונות לכל הדגמים שמותר; יש להסיר אחד.",
    "preset": "תבנית מובנית היא לקריאה בלבד; יש לבחור שם אחר.",
    "template_in_use": "התבנית בשימוש; יש להפעיל קודם אחרת.",
    "confirm_needed": "איפוס דורש confirm: true, ומחיקה דורשת confirm=DELETE.",
    "bad_archive": "הארכיון אינו ניתן לייבוא; ההודעה באנגלית אומרת מדוע.",
    "other_user_archive": "הארכיון שייך למשתמש אחר.",
    "no_archive": "אין ארכיון שמור בשם הזה.",
    "conversation_active": "זו השיחה הפעילה; יש לעבור קודם לאחרת.",
    "not_implemented": "הגרסה הזאת עוד אינה עושה זאת; ההודעה באנגלית אומרת מה לעשות.",
    "sessions_off": "אסימוני שיחה כבויים; יש להפעיל את auth.sessions או לשלוח מפתח.",
    "bad_token": "האסימון פג, בוטל, שונה או אינו אסימון; יש לבקש חדש.",
    "internal": "תקלה בשירות; מזהה הבקשה שבהודעה באנגלית נמצא ביומן.",
}


def prefers_hebrew(accepted: str) -> bool:
    """Whether a header `Accept-Language` wants Hebrew before English."""
    weights = {"he": 0.0, "en": 0.0}
    for part in accepted.split(","):
        name, _, rest = part.strip().partition(";")
        language = name.strip().lower().partition("-")[0]
        language = "he" if language == "iw" else language
        if language in weights:
            weights[language] = max(weights[language], _weight(rest))
    return weights["he"] > weights["en"]


def _weight(parameters: str) -> float:
    """The quality of a language, 0..1; 1 where none is given, 0 where it is no number."""
    name, _, value = parameters.strip().partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        weight = float(value)
    except ValueError:
        return 0.0
    return weight if 0.0 <= weight <= 1.0 else 0.0
