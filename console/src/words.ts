// Every word of the console, in both languages, side by side: one cannot be forgotten.
import { computed, signal } from "@preact/signals";
import known from "./known.json";

export type Language = "en" | "he";

const TABLE = {
  // the frame
  console: ["rayapp console", "rayapp · מסוף"],
  skip: ["Skip to the page", "דילוג אל העמוד"],
  pages: ["Pages", "עמודים"],
  memories: ["Memories", "זיכרונות"],
  askPage: ["Ask", "שאלה"],
  block: ["What the model sees", "מה המודל רואה"],
  live: ["Live", "עכשיו"],
  documents: ["Documents", "מסמכים"],
  conversations: ["Conversations", "שיחות"],
  learning: ["Learning", "למידה"],
  review: ["Review", "סקירה"],
  people: ["People and things", "אנשים ודברים"],
  yours: ["Your data", "הנתונים שלך"],
  operate: ["Operate", "תפעול"],
  switchLanguage: ["עברית", "English"],
  dark: ["Dark", "כהה"],
  light: ["Light", "בהיר"],
  signOut: ["Sign out", "יציאה"],
  user: ["User", "משתמש"],
  userOf: ["Acting for", "פועלים בשם"],
  userHint: [
    "Whose memory is shown. Leave it empty for the user of the key, or the default one.",
    "הזיכרון של מי מוצג. אפשר להשאיר ריק: משתמש המפתח, או משתמש ברירת המחדל.",
  ],
  show: ["Show", "הצגה"],
  noPage: [
    "There is no such page. Choose one from the list.",
    "אין עמוד כזה. אפשר לבחור עמוד מהרשימה.",
  ],
  readOnly: ["Read only", "קריאה בלבד"],
  readOnlyHint: [
    "This key may read. To correct or delete, sign in with a key that may write.",
    "המפתח הזה רק קורא. כדי לתקן או למחוק יש להיכנס עם מפתח שרשאי לכתוב.",
  ],
  // states of all pages
  loading: ["Loading…", "טוען…"],
  tryAgain: ["Try again", "לנסות שוב"],
  unreachable: [
    "The service does not answer. Check that it runs, then try again.",
    "השירות אינו עונה. יש לבדוק שהוא פועל ולנסות שוב.",
  ],
  refused: ["The service refused this", "השירות סירב"],
  degraded: ["Something was left out, because a part is away:", "חלק מהתשובה חסר, כי רכיב אינו זמין:"],
  cancel: ["Cancel", "ביטול"],
  working: ["Working…", "בעבודה…"],
  undo: ["Undo", "לבטל את הפעולה"],
  more: ["Show more", "להציג עוד"],
  close: ["Close", "סגירה"],
  back: ["Back", "חזרה"],
  save: ["Save", "שמירה"],
  saved: ["Saved.", "נשמר."],
  none: ["none", "אין"],
  yes: ["yes", "כן"],
  no: ["no", "לא"],
  // signing in
  signInTitle: ["Sign in", "כניסה"],
  signInLead: [
    "This service asks for a key. Whoever runs it makes one with:",
    "השירות דורש מפתח. מי שמפעיל אותו יוצר מפתח בפקודה:",
  ],
  keyLabel: ["Key", "מפתח"],
  stay: ["Stay signed in here", "להישאר מחוברים כאן"],
  stayHint: [
    "Keeps a short session in a cookie that no script can read; it covers no operating. Without it the key lives in this page until it is closed or loaded again.",
    "שומר הפעלה קצרה בעוגייה ששום סקריפט אינו קורא; היא אינה כוללת תפעול. בלי זה המפתח נשאר בעמוד עד שייסגר או ייטען שוב.",
  ],
  signedOut: ["You are signed out.", "יצאת מהמערכת."],
  // memories
  memoriesLead: [
    "Everything that is remembered: read it, correct it, take it back.",
    "כל מה שנזכר: לקרוא, לתקן, לקחת בחזרה.",
  ],
  remember: ["Remember something", "לזכור משהו"],
  text: ["Text", "טקסט"],
  tier: ["Tier", "מדרגה"],
  all: ["All", "הכול"],
  state: ["State", "מצב"],
  active: ["Active", "פעילים"],
  archived: ["Archived", "בארכיון"],
  source: ["Source", "מקור"],
  tag: ["Tag", "תגית"],
  tags: ["Tags", "תגיות"],
  tagsHint: ["Separated by commas", "מופרדות בפסיקים"],
  wordsIn: ["Words", "מילים"],
  from: ["From", "מתאריך"],
  until: ["Until", "עד תאריך"],
  order: ["Order", "סדר"],
  newest: ["Newest", "החדשים"],
  lately: ["Lately changed", "השתנו לאחרונה"],
  best: ["Most helpful", "המועילים"],
  clearFilters: ["Clear filters", "לנקות את הסינון"],
  found: ["Memories: {0}", "זיכרונות: {0}"],
  noMemories: [
    "Nothing is remembered yet. Remember something with the button above, or let your assistant store it over HTTP; it appears here at once.",
    "עדיין לא נזכר דבר. אפשר להוסיף זיכרון בכפתור שלמעלה, או לתת לעוזר לשמור דרך HTTP; הזיכרון יופיע כאן מיד.",
  ],
  noneMatch: [
    "No memory fits these conditions. Loosen one of them, or clear the filters.",
    "אין זיכרון שמתאים לתנאים. אפשר לרווח אחד מהם, או לנקות את הסינון.",
  ],
  select: ["Select", "בחירה"],
  selectAll: ["Select all shown", "לבחור את כל המוצגים"],
  chosen: ["Chosen: {0}", "נבחרו: {0}"],
  archive: ["Archive", "לארכיון"],
  archiveTitle: ["Archive {0}?", "להעביר לארכיון {0}?"],
  archiveBody: [
    "It is no longer found or shown to a model, and can be restored at any time.",
    "לא יימצא יותר ולא יוצג למודל, ואפשר לשחזר בכל עת.",
  ],
  reason: ["Reason", "סיבה"],
  archivedDone: ["Archived: {0}", "הועברו לארכיון: {0}"],
  restore: ["Restore", "שחזור"],
  restored: ["Restored: {0}", "שוחזרו: {0}"],
  remove: ["Delete", "מחיקה"],
  removeTitle: ["Delete {0}?", "למחוק {0}?"],
  removeBody: [
    "It is deleted with all its versions. This cannot be taken back; archive it if you are not sure.",
    "יימחק עם כל הגרסאות. אי אפשר לחזור מזה; אם יש ספק, עדיף להעביר לארכיון.",
  ],
  removed: ["Deleted: {0}", "נמחקו: {0}"],
  thisMemory: ["this memory", "את הזיכרון"],
  memoriesMany: ["{0} memories", "{0} זיכרונות"],
  pinned: ["pinned", "נעוץ"],
  pin: ["Pin", "לנעוץ"],
  unpin: ["Unpin", "להסיר נעיצה"],
  waitingIndex: ["waits for the index", "ממתין לאינדקס"],
  failedIndex: ["not in the index", "לא באינדקס"],
  success: ["Success", "הצלחה"],
  // one memory
  memory: ["Memory", "זיכרון"],
  edit: ["Edit", "תיקון"],
  editing: ["Correct this memory", "תיקון הזיכרון"],
  why: ["Why (kept with the old version)", "למה (נשמר עם הגרסה הישנה)"],
  confidence: ["Confidence", "ודאות"],
  facts: ["Facts", "פרטים"],
  id: ["Id", "מזהה"],
  created: ["Created", "נוצר"],
  changed: ["Changed", "השתנה"],
  expires: ["Expires", "יפוג"],
  version: ["Version", "גרסה"],
  versions: ["Versions", "גרסאות"],
  putBack: ["Put this text back", "להחזיר את הטקסט הזה"],
  asIn: ["as in version {0}", "כמו בגרסה {0}"],
  noVersions: ["It was never changed.", "לא השתנה מעולם."],
  index: ["Index", "אינדקס"],
  uses: ["Uses", "שימושים"],
  outcomes: ["Outcomes", "תוצאות"],
  outcomeCounts: ["worked {0} · partial {1} · failed {2}", "הועיל {0} · חלקית {1} · נכשל {2}"],
  conversation: ["Conversation", "שיחה"],
  document: ["Document", "מסמך"],
  tool: ["Tool", "כלי"],
  entities: ["Names", "שמות"],
  replaces: ["Replaces", "מחליף את"],
  replacedBy: ["Replaced by", "הוחלף על ידי"],
  validFrom: ["Valid from", "בתוקף מ־"],
  validTo: ["Valid until", "בתוקף עד"],
  instruction: ["Asks of every answer", "מבקש מכל תשובה"],
  archivedWhy: ["Archived because", "בארכיון כי"],
  askWith: ["Ask with it", "לשאול עליו"],
  // ask
  askLead: [
    "Ask as your assistant would, and see why each memory stands where it stands.",
    "לשאול כמו שהעוזר שואל, ולראות למה כל זיכרון עומד במקומו.",
  ],
  question: ["Question", "שאלה"],
  askButton: ["Ask", "לשאול"],
  recipe: ["Recipe", "מתכון"],
  beside: ["Beside it", "לצידו"],
  nothing: ["nothing", "כלום"],
  silence: ["Memory is silent", "הזיכרון שותק"],
  silenceBody: [
    "Nothing it holds answers this, so nothing would be told to the model. The nearest ones stand below, to be looked at only.",
    "אין בו דבר שעונה על השאלה, ולכן לא ייאמר דבר למודל. הקרובים ביותר מוצגים למטה, לעיון בלבד.",
  ],
  silenceEmpty: [
    "Nothing was found, not even something near. Ask in other words, or widen the tiers.",
    "לא נמצא דבר, גם לא משהו קרוב. אפשר לשאול במילים אחרות, או להרחיב את המדרגות.",
  ],
  unsure: [
    "Memory is not sure that it knows anything of this.",
    "הזיכרון אינו בטוח שהוא יודע משהו על זה.",
  ],
  knows: ["Memory knows of this.", "הזיכרון מכיר את זה."],
  reasonOf: ["Why", "למה"],
  noQuestion: [
    "Type a question, in Hebrew or English. The answer shows each hit with the parts of its place.",
    "לכתוב שאלה, בעברית או באנגלית. התשובה מראה כל תוצאה עם החלקים שקבעו את מקומה.",
  ],
  didYouMean: ["Did you mean", "האם הכוונה"],
  timing: ["{0} ms · recipe {1} · confidence {2}", "{0} מילישניות · מתכון {1} · ודאות {2}"],
  final: ["Final", "סופי"],
  meaning: ["Meaning", "משמעות"],
  reading: ["Encoder", "מקודד"],
  literal: ["Words", "מילים"],
  fused: ["Fusion", "מיזוג"],
  rerank: ["Rerank", "דירוג מחדש"],
  floor: ["Floor", "רף"],
  floorHint: ["The probability that it answers at all", "ההסתברות שזה עונה בכלל"],
  outcomePart: ["Outcomes", "תוצאות"],
  outcomeHint: [
    "A factor: above 1 it helped before, below 1 it failed",
    "מקדם: מעל 1 הועיל בעבר, מתחת ל־1 נכשל",
  ],
  boosts: ["Boosts", "חיזוקים"],
  helped: ["It helped", "הועיל"],
  failedIt: ["It failed", "נכשל"],
  judged: ["Judged. Ask again to see what it moved.", "נשפט. אפשר לשאול שוב ולראות מה זז."],
  whyNot: ["Why not this one?", "למה לא זה?"],
  whyNotHint: ["An id, or words of the memory", "מזהה, או מילים מהזיכרון"],
  follow: ["Follow it", "לעקוב"],
  noSuch: [
    "No memory has these words or this id. Copy an id from the page Memories.",
    "אין זיכרון עם המילים או המזהה האלה. אפשר להעתיק מזהה מעמוד הזיכרונות.",
  ],
  shownAt: ["Shown at place {0}.", "מוצג במקום {0}."],
  lostAt: ["Lost at: {0}", "אבד בשלב: {0}"],
  outdatedBy: ["A newer one says otherwise", "חדש יותר אומר אחרת"],
  alsoThese: ["Near-equal ones folded in: {0}", "כמעט זהים שקופלו לכאן: {0}"],
  // the block
  blockLead: [
    "The very text that would stand before a model's answer: what stays, what changes with the question, what was cut.",
    "הטקסט עצמו שיעמוד לפני תשובת המודל: מה קבוע, מה משתנה עם השאלה, ומה נחתך.",
  ],
  budget: ["Token budget", "תקציב אסימונים"],
  budgetHint: ["Empty: as the service is set", "ריק: כפי שהשירות מוגדר"],
  look: ["Look", "להציג"],
  stable: ["Stable part", "החלק הקבוע"],
  stableHint: [
    "Stays the same until one of its memories changes, so a prompt cache keeps it",
    "נשאר זהה עד שאחד מזיכרונותיו משתנה, ולכן מטמון הפרומפט שומר אותו",
  ],
  changing: ["Changing part", "החלק המשתנה"],
  changingHint: ["What this question brought", "מה שהשאלה הזאת הביאה"],
  tokens: ["Tokens", "אסימונים"],
  cut: ["Cut", "נחתכו"],
  cutHint: ["Did not fit into the budget", "לא נכנסו לתקציב"],
  toolsAllowed: ["Tools", "כלים"],
  blockEmpty: [
    "Nothing would be told to the model: memory knows nothing of this.",
    "לא ייאמר דבר למודל: הזיכרון אינו יודע דבר על זה.",
  ],
  noBlock: [
    "Type a question to see the block for it. Looking judges and teaches nothing.",
    "לכתוב שאלה כדי לראות את הטקסט שלה. העיון אינו שופט ואינו מלמד דבר.",
  ],
  raw: ["As the model reads it", "כפי שהמודל קורא"],
  // live
  liveLead: ["What happens in memory, as it happens.", "מה קורה בזיכרון, בזמן שזה קורה."],
  pause: ["Pause", "השהיה"],
  resume: ["Resume", "המשך"],
  pausedCount: ["Paused. Waiting: {0}", "בהשהיה. ממתינים: {0}"],
  connected: ["Connected", "מחובר"],
  reconnecting: ["Connecting again…", "מתחבר שוב…"],
  noEvents: [
    "Nothing has happened since this page was opened. Store or ask something; it appears here.",
    "לא קרה דבר מאז שהעמוד נפתח. אפשר לשמור או לשאול משהו; זה יופיע כאן.",
  ],
  kinds: ["Kinds", "סוגים"],
  pendingItems: ["Waiting for the index", "ממתינים לאינדקס"],
  failedItems: ["Failed to index", "נכשלו באינדקס"],
  oldest: ["Oldest waits", "הוותיק ממתין"],
  seconds: ["{0} s", "{0} שניות"],
  gone: ["no longer there", "כבר אינו"],
  missed: [
    "Older events are no longer kept: load the page again to see what is.",
    "אירועים ישנים כבר אינם נשמרים: יש לטעון את העמוד שוב כדי לראות את המצב.",
  ],
  // documents
  documentsLead: [
    "Files that memory reads: PDF, Word, sheets, e-books, web pages, text.",
    "קבצים שהזיכרון קורא: PDF, וורד, גיליונות, ספרים, דפי רשת, טקסט.",
  ],
  drop: ["Drop a file here, or choose one", "לגרור לכאן קובץ, או לבחור"],
  chooseFile: ["Choose a file", "לבחור קובץ"],
  sending: ["Sending {0}…", "שולח את {0}…"],
  noDocuments: [
    "No documents yet. Drop a file above; its passages are found in seconds.",
    "אין עדיין מסמכים. אפשר לגרור קובץ למעלה; הקטעים שלו יימצאו תוך שניות.",
  ],
  passages: ["Passages", "קטעים"],
  noPassages: ["It has no passages yet.", "אין לו עדיין קטעים."],
  pagesOf: ["p. {0}", "עמ׳ {0}"],
  size: ["Size", "גודל"],
  characters: ["Characters", "תווים"],
  language: ["Language", "שפה"],
  author: ["Author", "מחבר"],
  summary: ["Summary", "תקציר"],
  noText: ["Pages without text", "עמודים ללא טקסט"],
  removeDocument: ["Delete this document?", "למחוק את המסמך?"],
  removeDocumentBody: [
    "The file and all its passages are deleted. Send the file again to have it back.",
    "הקובץ וכל קטעיו יימחקו. כדי להחזיר יש לשלוח את הקובץ שוב.",
  ],
  onlyIn: ["Seen in one conversation only", "נראה בשיחה אחת בלבד"],
  // conversations
  conversationsLead: [
    "What was said, what was learned of it, and how to take it back.",
    "מה נאמר, מה נלמד מזה, ואיך לקחת בחזרה.",
  ],
  searchConversations: ["Search in conversations", "חיפוש בשיחות"],
  noConversations: [
    "No conversations yet. They appear when your assistant sends its exchanges.",
    "אין עדיין שיחות. הן יופיעו כשהעוזר ישלח את חילופי הדברים.",
  ],
  noConversationMatch: [
    "No conversation has these words. Try fewer of them.",
    "אין שיחה עם המילים האלה. אפשר לנסות פחות מילים.",
  ],
  turns: ["Turns: {0}", "תורות: {0}"],
  person: ["Person", "אדם"],
  assistant: ["Assistant", "עוזר"],
  used: ["Used", "נעזר ב־"],
  learnedAs: ["Kept as a memory", "נשמר כזיכרון"],
  forget: ["Forget this conversation", "לשכוח את השיחה"],
  forgetTitle: ["Forget this conversation?", "לשכוח את השיחה?"],
  forgetBody: [
    "Its turns are deleted, and everything it taught is taken back. Nothing else changes.",
    "התורות יימחקו, וכל מה שנלמד מהן יילקח בחזרה. שום דבר אחר לא ישתנה.",
  ],
  forgotten: ["Forgotten: {0} rows", "נשכחו: {0} רשומות"],
  brokeOff: ["broke off", "נקטע"],
  untitled: ["Untitled", "ללא כותרת"],
  // review
  reviewLead: [
    "What was not said outright: it is told to no model until you accept it.",
    "מה שלא נאמר במפורש: לא ייאמר לאף מודל עד שיאושר כאן.",
  ],
  reviewKeys: [
    "Keys: J next, K before, A accept, E edit, D decline, U undo",
    "מקשים: J הבא, K הקודם, A אישור, E תיקון, D דחייה, U ביטול הפעולה",
  ],
  nothingWaits: [
    "Nothing waits for you. What is noticed in several memories appears here.",
    "דבר אינו ממתין. מה שיבלוט מכמה זיכרונות יופיע כאן.",
  ],
  nothingDecided: [
    "There is nothing of this state. Choose another one.",
    "אין דבר במצב הזה. אפשר לבחור מצב אחר.",
  ],
  accept: ["Accept", "אישור"],
  decline: ["Decline", "דחייה"],
  saveAccept: ["Save and accept", "שמירה ואישור"],
  sureOf: ["sure by {0}", "ודאות {0}"],
  seenIn: ["in {0} memories, on {1} days", "ב־{0} זיכרונות, ב־{1} ימים"],
  did_accept: ["Accepted.", "אושר."],
  did_decline: ["Declined. It does not come back.", "נדחה. זה לא יחזור."],
  did_undo: ["Taken back.", "הוחזר."],
  // people
  peopleLead: [
    "Whom and what memories name, what is said of them, and which memory says it.",
    "את מי ואת מה הזיכרונות מזכירים, מה נאמר עליהם, ואיזה זיכרון אומר זאת.",
  ],
  addNode: ["Add by hand", "הוספה ידנית"],
  name: ["Name", "שם"],
  newName: ["Its name", "השם"],
  type: ["Type", "סוג"],
  otherNames: ["Other names", "שמות נוספים"],
  verified: ["made by hand", "נוסף ידנית"],
  namedBy: ["Named by", "מוזכר ב־"],
  firstSeen: ["First named", "הוזכר לראשונה"],
  lastSeen: ["Last named", "הוזכר לאחרונה"],
  mostNamed: [
    "The {0} that are named most are shown. Search for a name to find the others.",
    "מוצגים ה־{0} שמוזכרים הכי הרבה. כדי למצוא אחרים יש לחפש שם.",
  ],
  noNodes: [
    "No one is named yet. Remember something about a person, or add one with the button above.",
    "עדיין לא הוזכר אף אחד. אפשר לזכור משהו על אדם, או להוסיף בכפתור שלמעלה.",
  ],
  noneNamed: [
    "Nothing with this name or type. Search for another name, or choose all types.",
    "אין דבר בשם או בסוג הזה. אפשר לחפש שם אחר, או לבחור את כל הסוגים.",
  ],
  relations: ["What is said", "מה נאמר"],
  relation: ["Relation", "קשר"],
  toWhom: ["To", "אל"],
  choose: ["Choose…", "לבחור…"],
  sinceWhen: ["Since", "החל מ־"],
  asOf: ["As it stood on (empty: now)", "כפי שהיה בתאריך (ריק: עכשיו)"],
  noRelations: [
    "Nothing is said of it yet. Link it by hand with the button above.",
    "עדיין לא נאמר עליו דבר. אפשר לקשר ידנית בכפתור שלמעלה.",
  ],
  noRelationsThen: [
    "Nothing was known of it then. Choose a later date, or none.",
    "לא היה ידוע עליו דבר אז. אפשר לבחור תאריך מאוחר יותר, או לרוקן.",
  ],
  since: ["since {0}", "מ־{0}"],
  upTo: ["until {0}", "עד {0}"],
  inDoubt: [
    "What this rests on no longer holds. Say it anew, or delete the memory that says it.",
    "מה שזה נשען עליו כבר אינו תקף. אפשר לומר זאת מחדש, או למחוק את הזיכרון שאומר זאת.",
  ],
  saidBy: ["Memories that say it: {0}", "זיכרונות שאומרים זאת: {0}"],
  timeline: ["Memories of it, newest first", "זיכרונות עליו, מהחדש לישן"],
  noSources: ["No memory names it: it was made by hand.", "אף זיכרון אינו מזכיר אותו: הוא נוסף ידנית."],
  link: ["Link", "קישור"],
  merge: ["Merge", "מיזוג"],
  split: ["Split", "פיצול"],
  sameAs: ["The same as", "זהה ל־"],
  stays: ["Which name stays", "איזה שם נשאר"],
  tryFirst: ["See what it would do", "לראות מה זה יעשה"],
  mergeNow: ["Merge them", "למזג"],
  splitNow: ["Split it", "לפצל"],
  splitLead: [
    "Choose the memories that mean somebody or something else of the same name.",
    "לבחור את הזיכרונות שמתכוונים למישהו או למשהו אחר באותו שם.",
  ],
  wouldMerge: ["Nothing was changed yet. It would be:", "עדיין לא השתנה דבר. כך זה יהיה:"],
  readsAnew: ["Sayings that move", "אמירות שיעברו"],
  wouldEnd: ["Of them end, since a later one holds", "מהן יסתיימו, כי מאוחרת מהן תקפה"],
  mergesAndSplits: ["Merged and split", "מיזוגים ופיצולים"],
  savePage: ["Take it along as a page", "להוריד כדף"],
  saidLast: ["said last", "נאמר לאחרונה"],
  derived: ["Thoughts and episodes", "מחשבות ואירועים"],
  noDerived: [
    "None name it yet. What memories of several days say together appears here.",
    "עדיין אין כאלה. מה שזיכרונות מכמה ימים אומרים יחד יופיע כאן.",
  ],
  picture: ["What it is linked to; the list below has all of it.", "מה שמקושר אליו; הרשימה למטה כוללת הכול."],
  removeNode: ["Delete {0}?", "למחוק את {0}?"],
  removeNodeBody: [
    "It goes with all that is said of it; the memories stay. It comes back when another memory names it.",
    "יימחק עם כל מה שנאמר עליו; הזיכרונות נשארים. יחזור כשזיכרון אחר יזכיר אותו.",
  ],
  nodeRemoved: ["Deleted.", "נמחק."],
  // learning
  learningLead: [
    "What outcomes taught: which memories help, how they climb, which tools and tiers pay.",
    "מה שהתוצאות לימדו: אילו זיכרונות מועילים, איך הם עולים, ואילו כלים ומדרגות משתלמים.",
  ],
  ladder: ["The ladder", "הסולם"],
  ladderLead: [
    "A memory that helps again and again climbs; one that fails comes down, and what is not used goes to the archive.",
    "זיכרון שמועיל שוב ושוב עולה; זיכרון שנכשל יורד, ומה שאינו בשימוש עובר לארכיון.",
  ],
  usesAndSuccess: ["uses {0}, success {1}", "שימושים {0}, הצלחה {1}"],
  climbs: ["Climb lately", "עולים לאחרונה"],
  falls: ["Come down lately", "יורדים לאחרונה"],
  lastCycle: ["Rules ran last", "הכללים רצו לאחרונה"],
  runCycle: ["Run the rules now", "להריץ את הכללים עכשיו"],
  cycleDid: ["Up {0}, down {1}, to the archive {2}", "עלו {0}, ירדו {1}, לארכיון {2}"],
  growth: ["New memories by day", "זיכרונות חדשים לפי יום"],
  growthSays: [
    "{0} new memories in {1} days, {2} on the fullest day",
    "{0} זיכרונות חדשים ב־{1} ימים, {2} ביום המלא ביותר",
  ],
  helpful: ["Success by memory", "הצלחה לפי זיכרון"],
  helpfulLead: [
    "The share of times that it helped, with its interval of 95 %: few outcomes, a wide one.",
    "שיעור הפעמים שבהן הועיל, עם רווח סמך של 95%: מעט תוצאות, רווח רחב.",
  ],
  nothingJudged: [
    "No memory was judged yet. Judge one on the page Ask, or send outcomes.",
    "אף זיכרון לא נשפט עדיין. אפשר לשפוט בעמוד שאלה, או לשלוח תוצאות.",
  ],
  toolsThatHelp: ["Tools and actions", "כלים ופעולות"],
  toolsLead: [
    "At least so often they lead to an answer that worked.",
    "לפחות בשיעור הזה הם מובילים לתשובה שהועילה.",
  ],
  noTools: [
    "Nothing is known of any tool yet. It is learned from exchanges with tool_runs, and from outcomes.",
    "עדיין לא ידוע דבר על כלים. זה נלמד מחילופי דברים עם tool_runs, ומתוצאות.",
  ],
  routing: ["Where answers are found", "היכן נמצאות תשובות"],
  topic: ["Topic", "נושא"],
  bestIn: ["Best in", "הכי טוב ב־"],
  noRouting: [
    "No topic was judged yet. It is learned from outcomes.",
    "אף נושא לא נשפט עדיין. זה נלמד מתוצאות.",
  ],
  insights: ["Insights for a question", "תובנות לשאלה"],
  insightsLead: [
    "What experience would tell a model beside the memories themselves.",
    "מה שהניסיון היה אומר למודל לצד הזיכרונות עצמם.",
  ],
  noInsights: [
    "Experience says nothing of this. Ask about something that was judged before.",
    "לניסיון אין מה לומר על זה. אפשר לשאול על משהו שכבר נשפט.",
  ],
  helpedBefore: ["Helped before", "הועילו בעבר"],
  failedBefore: ["Failed before", "נכשלו בעבר"],
  advised: ["advised", "מומלץ"],
  // yours
  yoursLead: [
    "Take everything with you, bring it from elsewhere, or erase it for good.",
    "לקחת הכול, להביא ממקום אחר, או למחוק לצמיתות.",
  ],
  kept: ["What is kept", "מה נשמר"],
  rows: ["Rows", "רשומות"],
  nothingKept: ["Nothing is kept of this user.", "לא נשמר דבר של המשתמש הזה."],
  exportTitle: ["Export", "ייצוא"],
  exportBody: [
    "One zip with every row that belongs to this user, readable by people and programs.",
    "קובץ zip אחד עם כל רשומה של המשתמש, קריא לאדם ולתוכנה.",
  ],
  exportButton: ["Export everything", "לייצא הכול"],
  importTitle: ["Import", "ייבוא"],
  importBody: [
    "An export of this service or of another one. It is first tried without writing anything.",
    "ייצוא של השירות הזה או של שירות אחר. קודם נבדק בלי לכתוב דבר.",
  ],
  ours: ["Export of rayapp", "ייצוא של rayapp"],
  comesFrom: ["Comes from", "מגיע מ־"],
  file: ["File", "קובץ"],
  tryImport: ["Try without writing", "לבדוק בלי לכתוב"],
  doImport: ["Import now", "לייבא עכשיו"],
  wouldAdd: ["Nothing was written yet. It would bring:", "עדיין לא נכתב דבר. היה מביא:"],
  didAdd: ["Imported:", "יובא:"],
  added: ["new", "חדש"],
  present: ["there already", "כבר קיים"],
  changedRows: ["changed", "ישתנה"],
  eraseTitle: ["Erase", "מחיקה לצמיתות"],
  eraseBody: [
    "Deletes everything that is kept of this user, and proves it with a certificate. Export first: nothing comes back.",
    "מוחק כל מה שנשמר של המשתמש, ומוכיח זאת בתעודה. כדאי לייצא קודם: דבר לא יחזור.",
  ],
  eraseButton: ["Erase everything", "למחוק הכול"],
  eraseAsk: ["Erase everything of this user?", "למחוק את כל מה ששמור על המשתמש?"],
  certificate: ["Certificate", "תעודה"],
  certificateBody: [
    "Keep it: it names no text, and its fingerprint shows that it was not changed.",
    "לשמור אותה: אין בה טקסט, וטביעת האצבע מראה שלא שונתה.",
  ],
  saveCertificate: ["Save the certificate", "לשמור את התעודה"],
  complete: ["Everything is gone.", "הכול נמחק."],
  incomplete: [
    "Something is left or could not be looked at: erase once more.",
    "משהו נשאר או לא נבדק: יש למחוק פעם נוספת.",
  ],
  backups: ["Archives kept on the server", "ארכיונים ששמורים בשרת"],
  // operate
  operateLead: [
    "How the service is, what it works on, and what needs a hand.",
    "מצב השירות, על מה הוא עובד, ומה דורש טיפול.",
  ],
  operatorsOnly: [
    "The rest is for whoever runs the service: sign in with a key that has the scope admin, without staying signed in.",
    "השאר מיועד למי שמפעיל את השירות: יש להיכנס עם מפתח בעל הרשאת admin, בלי להישאר מחוברים.",
  ],
  health: ["Health", "בריאות"],
  healthy: ["Everything works.", "הכול פועל."],
  unhealthy: ["Something is away: see below.", "משהו אינו זמין: פירוט למטה."],
  away: ["away", "לא זמין"],
  well: ["well", "תקין"],
  jobs: ["Jobs", "משימות"],
  noJobs: ["No job was ever started.", "מעולם לא הופעלה משימה."],
  progress: ["Progress", "התקדמות"],
  cancelJob: ["Cancel the job", "לבטל את המשימה"],
  integrity: ["Do the stores agree", "האם המאגרים תואמים"],
  repair: ["Repair", "תיקון"],
  vectors: ["Points", "נקודות"],
  tenants: ["Tenants", "דיירים"],
  keysLead: [
    "A key is shown once and kept as a hash. Give each program its own, with an end.",
    "מפתח מוצג פעם אחת ונשמר כגיבוב. כדאי לתת לכל תוכנה מפתח משלה, עם תאריך סיום.",
  ],
  makeKey: ["Make a key", "יצירת מפתח"],
  noKeys: ["There is no key yet. Make one with the button above.", "אין עדיין מפתח. אפשר ליצור בכפתור שלמעלה."],
  keyShown: [
    "Copy the key now: it is not shown again.",
    "יש להעתיק את המפתח עכשיו: הוא לא יוצג שוב.",
  ],
  copy: ["Copy", "העתקה"],
  copied: ["Copied.", "הועתק."],
  rotate: ["Rotate", "החלפה"],
  rotateAsk: ["Rotate {0}?", "להחליף את {0}?"],
  rotateBody: [
    "Another key that may do the same is made and shown once. This one works for a day more, so that programs can be moved.",
    "ייווצר מפתח נוסף עם אותן הרשאות ויוצג פעם אחת. המפתח הזה יפעל עוד יום, כדי שאפשר יהיה להעביר תוכנות.",
  ],
  revoke: ["Revoke", "שלילה"],
  revokeAsk: ["Revoke {0}?", "לשלול את {0}?"],
  revokeBody: [
    "Whatever uses it is refused within seconds, with the sessions that it made. This cannot be taken back.",
    "כל מה שמשתמש בו יסורב תוך שניות, כולל ההפעלות שנוצרו ממנו. אי אפשר לחזור מזה.",
  ],
  revoked: ["Revoked.", "נשלל."],
  any: ["any", "כל אחד"],
  tenant: ["Tenant", "דייר"],
  lastUse: ["last used", "שימוש אחרון"],
  never: ["never", "מעולם לא"],
  keyName: ["What it is for", "למה הוא משמש"],
  principal: ["Who", "מי"],
  principalHint: ["The name by which its doings are known", "השם שתחתיו נרשמות הפעולות"],
  userOfKey: ["User", "משתמש"],
  userOfKeyHint: ["Empty: any user, with admin alone", "ריק: כל משתמש, רק עם admin"],
  coversread: ["reading", "קריאה"],
  coverswrite: ["reading and writing", "קריאה וכתיבה"],
  coversadmin: ["everything, of all users", "הכול, של כל המשתמשים"],
  sections: ["Sections of this page", "חלקי העמוד"],
  covers: ["Covers", "מרשה"],
  endsOn: ["Ends on (empty: never)", "מסתיים בתאריך (ריק: לעולם לא)"],
  audit: ["Audit log", "יומן ביקורת"],
  auditLead: [
    "What was deleted, exported, imported or operated: by whom, when and from where. No text stands in it, and nothing changes it.",
    "מה נמחק, יוצא, יובא או תופעל: על ידי מי, מתי ומאיפה. אין בו טקסט, ודבר אינו משנה אותו.",
  ],
  noEntries: ["Nothing was noted. Choose another name, or none.", "לא נרשם דבר. אפשר לבחור שם אחר, או לרוקן."],
  held: ["held", "מוחזק"],
  noUsers: ["Nothing is kept of any user of it.", "לא נשמר דבר על אף משתמש שלו."],
  webhooks: ["Webhooks", "קריאות לתוכנות"],
  webhooksLead: [
    "Programs that are told what happens, by signed requests without texts.",
    "תוכנות שנאמר להן מה קורה, בבקשות חתומות וללא טקסטים.",
  ],
  secretShown: [
    "Copy the secret that signs the requests: it is not shown again.",
    "יש להעתיק את הסוד שחותם את הבקשות: הוא לא יוצג שוב.",
  ],
  addWebhook: ["Add a webhook", "הוספת קריאה"],
  noWebhooks: [
    "No program is told anything. Add an address with the button above.",
    "לא נאמר דבר לאף תוכנה. אפשר להוסיף כתובת בכפתור שלמעלה.",
  ],
  address: ["Address", "כתובת"],
  description: ["Description", "תיאור"],
  whichEvents: ["Which events", "אילו אירועים"],
  whichEventsHint: ["None chosen: all of them", "לא נבחר דבר: כולם"],
  tryIt: ["Try it", "לנסות"],
  delivered: ["The program took it.", "התוכנה קיבלה."],
  removeWebhook: ["Delete this webhook?", "למחוק את הקריאה?"],
  removeWebhookBody: [
    "Nothing is sent any more, and the log of what was sent goes.",
    "לא יישלח עוד דבר, ויומן השליחות יימחק.",
  ],
  deliveries: ["What it was told", "מה נאמר לה"],
  noDeliveries: ["Nothing yet. Store something, or try it.", "עדיין כלום. אפשר לשמור משהו, או לנסות."],
  tries: ["tries: {0}", "ניסיונות: {0}"],
  sendAgain: ["Send again", "לשלוח שוב"],
  sendAllAgain: ["Send all again that were given up", "לשלוח שוב את כל מה שלא התקבל"],
  sentAgain: ["On their way again: {0}", "נשלחים שוב: {0}"],
  lastDays: ["The last {0} days", "{0} הימים האחרונים"],
  today: ["Tokens today", "אסימונים היום"],
  limitOf: ["Limit a day: {0}", "מגבלה ליום: {0}"],
  noTenants: ["There are no tenants besides the default one.", "אין דיירים מלבד ברירת המחדל."],
  keys: ["Keys", "מפתחות"],
  users: ["Users", "משתמשים"],
  usage: ["Language model", "מודל שפה"],
  usageOff: [
    "None is configured: set models.base_url and models.model to let helpers ask one.",
    "לא הוגדר: יש להגדיר models.base_url ו־models.model כדי שהעוזרים ישאלו מודל.",
  ],
  calls: ["Calls", "קריאות"],
  cost: ["Cost", "עלות"],
  storage: ["Space", "מקום"],
} satisfies Record<string, readonly [string, string]>;

type Name = keyof typeof TABLE;

const TIERS: Record<string, readonly [string, string]> = {
  working: ["working", "עבודה"],
  history: ["history", "היסטוריה"],
  patterns: ["patterns", "דפוסים"],
  books: ["documents", "מסמכים"],
  documents: ["documents", "מסמכים"],
  memory_bank: ["memory bank", "בנק זיכרון"],
  datagov_schema: ["open data", "מידע פתוח"],
  datagov_expansion: ["open data words", "מילון מידע פתוח"],
};

const VALUES: Record<string, readonly [string, string]> = {
  // sources
  user: ["user", "משתמש"],
  assistant: ["assistant", "עוזר"],
  tool: ["tool", "כלי"],
  document: ["document", "מסמך"],
  system: ["system", "מערכת"],
  datagov: ["open data", "מידע פתוח"],
  import: ["import", "ייבוא"],
  // events and kinds of change
  stored: ["stored", "נשמר"],
  indexed: ["indexed", "נכנס לאינדקס"],
  outcome: ["judged", "נשפט"],
  promoted: ["promoted", "קודם"],
  demoted: ["demoted", "הורד"],
  archived: ["archived", "לארכיון"],
  archive: ["archived", "הועבר לארכיון"],
  restored: ["restored", "שוחזר"],
  restore: ["restored", "שוחזר"],
  updated: ["changed", "השתנה"],
  update: ["changed", "השתנה"],
  edit: ["edited", "תוקן"],
  merged: ["merged", "מוזג"],
  learned: ["learned", "נלמד"],
  extended: ["extended", "הוארך"],
  outcome_detected: ["outcome seen", "זוהתה תוצאה"],
  job: ["job", "משימה"],
  reset: ["reset", "איפוס"],
  // review
  accepted: ["accepted", "אושר"],
  declined: ["declined", "נדחה"],
  done: ["done", "בוצע"],
  undone: ["taken back", "הוחזר"],
  merge: ["merge", "מיזוג"],
  split: ["split", "פיצול"],
  resolver: ["by itself", "אוטומטי"],
  ontology: ["types and relations", "סוגים וקשרים"],
  name: ["names", "שמות"],
  company: ["company", "סביבה"],
  time: ["time", "זמן"],
  thought: ["thought", "מחשבה"],
  episode: ["episode", "אירוע"],
  explicit: ["said outright", "נאמר במפורש"],
  strengthening: ["growing", "מתחזק"],
  steady: ["steady", "יציב"],
  weakening: ["fading", "נחלש"],
  stale: ["long ago", "מזמן"],
  new: ["new", "חדש"],
  // what is known
  known: ["known", "ידוע"],
  in_doubt: ["in doubt", "בספק"],
  ended: ["ended", "הסתיים"],
  deductive: ["follows from others", "נובע מאחרים"],
  inductive: ["seen again and again", "נראה שוב ושוב"],
  contradiction: ["said against another", "סותר אחר"],
  // states
  active: ["active", "פעיל"],
  pending: ["waiting", "ממתין"],
  synced: ["in the index", "באינדקס"],
  failed: ["failed", "נכשל"],
  submitted: ["submitted", "הוגש"],
  running: ["running", "רץ"],
  paused: ["paused", "מושהה"],
  completed: ["completed", "הושלם"],
  cancelled: ["cancelled", "בוטל"],
  processing: ["being read", "בקריאה"],
  reading: ["reading", "קורא"],
  chunking: ["cutting into passages", "חותך לקטעים"],
  ingesting: ["storing its passages", "שומר את הקטעים"],
  queued: ["waiting", "ממתין"],
  high: ["high", "גבוהה"],
  medium: ["medium", "בינונית"],
  low: ["low", "נמוכה"],
  worked: ["worked", "הועיל"],
  partial: ["partial", "חלקית"],
  unknown: ["unknown", "לא ידוע"],
  // keys, the audit log, webhooks
  read: ["read", "קריאה"],
  write: ["write", "כתיבה"],
  admin: ["operate", "תפעול"],
  expired: ["expired", "פג"],
  revoked: ["revoked", "נשלל"],
  memory_id: ["memory", "זיכרון"],
  conversation_id: ["conversation", "שיחה"],
  key_id: ["key", "מפתח"],
  made: ["made", "נוצר"],
  org_id: ["tenant", "דייר"],
  webhook_id: ["webhook", "קריאה"],
  node_id: ["node", "צומת"],
  book_id: ["document", "מסמך"],
  job_id: ["job", "משימה"],
  target: ["what", "מה"],
  delivery_done: ["taken", "התקבל"],
  delivery_dead: ["given up", "נכשל"],
  delivery_waiting: ["on its way", "בדרך"],
  tokens: ["tokens", "אסימונים"],
  calls: ["calls", "קריאות"],
  cost: ["cost", "עלות"],
  // kinds of rows
  memories: ["Memories", "זיכרונות"],
  versions: ["Versions", "גרסאות"],
  outcomes: ["Outcomes", "תוצאות"],
  graphs: ["Graphs", "גרפים"],
  documents: ["Documents", "מסמכים"],
  conversations: ["Conversations", "שיחות"],
  personality: ["Personality", "אישיות"],
  tombstones: ["Marks of deletion", "סימני מחיקה"],
  // parts of the service
  mongodb: ["Truth (MongoDB)", "אמת (MongoDB)"],
  qdrant: ["Index (Qdrant)", "אינדקס (Qdrant)"],
  redis: ["Cache (Redis)", "מטמון (Redis)"],
  embedding: ["Embedding", "הטמעה"],
  reranking: ["Reranking", "דירוג מחדש"],
  models: ["Language model", "מודל שפה"],
  disk: ["Disk", "דיסק"],
  // stages of an explanation
  truth: ["Truth", "אמת"],
  filter: ["Conditions", "תנאים"],
  retrieve: ["Retrieval", "אחזור"],
  knowledge: ["Knowledge", "ידיעה"],
  rank: ["Ranking", "דירוג"],
  rerank: ["Rerank", "דירוג מחדש"],
  collapse: ["Near-equal", "כמעט זהים"],
  page: ["Page", "עמוד"],
};

// Why memory knows, or does not, as the service says it; a test holds both lists together.
const REASONS: Record<string, string> = {
  "It was not assessed: the search saw only a part of what there is.":
    "זה לא נבדק: החיפוש ראה רק חלק ממה שיש.",
  "A filter, an order or a tier was asked for, so what fits is told.":
    "התבקשו סינון, סדר או מדרגה, ולכן נאמר מה שמתאים.",
  "The message asks for what was said or is kept here, so what fits is told.":
    "ההודעה שואלת על מה שנאמר או נשמר כאן, ולכן נאמר מה שמתאים.",
  "There are too few memories to tell what is far from all of them.":
    "יש מעט מדי זיכרונות כדי לדעת מה רחוק מכולם.",
  "The memories are in another language, in which far says little.":
    "הזיכרונות בשפה אחרת, ובה מרחק אומר מעט.",
  "A memory holds what the question names, or solved it before.":
    "יש זיכרון עם מה שהשאלה מזכירה, או שכבר פתר אותה.",
  "No memory is near enough to the question, and its words are hardly known.":
    "אין זיכרון קרוב מספיק לשאלה, והמילים שלה כמעט אינן מוכרות.",
  "Memories are near to the question.": "יש זיכרונות קרובים לשאלה.",
  "Memories are neither near to the question nor far from it.":
    "הזיכרונות אינם קרובים לשאלה ואינם רחוקים ממנה.",
};

const saved = localStorage.getItem("language");
const wanted = saved ?? (/^(he|iw)\b/.test(navigator.language) ? "he" : "en");
export const language = signal<Language>(wanted === "he" ? "he" : "en");

export function speak(next: Language): void {
  localStorage.setItem("language", next);
  language.value = next;
}

const at = (pair: readonly [string, string]): string =>
  language.value === "he" ? pair[1] : pair[0];

type Words = Record<Name, string> & {
  interval: (low: string, high: string) => string;
  typeWord: (word: string) => string;
};

/** The words of the language that is spoken now. */
export const words = computed<Words>(() => {
  const found = Object.fromEntries(
    Object.entries(TABLE).map(([name, pair]) => [name, at(pair)]),
  ) as Record<Name, string>;
  const he = language.value === "he";
  return {
    ...found,
    interval: (low, high) =>
      he ? `בין ${low} ל־${high}, ברמת ביטחון של 95%` : `between ${low} and ${high}, 95 % interval`,
    typeWord: (word) => (he ? `להקליד ${word} כדי לאשר` : `Type ${word} to confirm`),
  };
});

/** A phrase with its places filled in. */
export const fill = (phrase: string, ...values: (string | number)[]): string =>
  phrase.replace(/\{(\d)\}/g, (_, place: string) => String(values[Number(place)] ?? ""));

export const tierName = (name: string): string => at(TIERS[name] ?? [name, name]);

/** A value of the API in words; one that is not known is shown as it is. */
export const valueName = (name: string): string =>
  at(VALUES[name] ?? [name.replaceAll("_", " "), name.replaceAll("_", " ")]);

const worded = (name: string, table: Record<string, { en: string; he: string }>): string => {
  const row = table[name];
  return row ? row[language.value] : name.replaceAll("_", " ");
};

/** A type of the typed graph, and a relation, as the registry words them. */
export const typeName = (name: string): string => worded(name, known.types);
export const relationName = (name: string): string => worded(name, known.relations);

/** The reason at the end of what the service says of its knowledge. */
export function reasonName(detail: string): string {
  const known = Object.keys(REASONS).find((sentence) => detail.endsWith(sentence));
  if (!known) return detail;
  return language.value === "he" ? (REASONS[known] ?? known) : known;
}

// `documents` is another name of `books`.
export const TIER_NAMES = Object.keys(TIERS).filter((name) => name !== "documents");
