"""Which statements are wanted. Pure."""

from rayapp.understanding.statements.ports import StatementsWanted
from rayapp.understanding.statements.records import Statement
from rayapp.understanding.statements.rules.facts import meant_by


def is_wanted(one: Statement, wanted: StatementsWanted) -> bool:
    """Whether it meets all conditions."""
    pairs = (
        (wanted.source_ids, one.source_id),
        (wanted.slots, one.slot),
        (wanted.fact_ids, one.fact_id),
        (wanted.subject_ids, one.subject_id),
        (wanted.object_ids, one.object_id),
        (wanted.relations, one.relation),
        (wanted.spans, one.span),
    )
    if any(values is not None and value not in values for values, value in pairs):
        return False
    premises = {each.fact_id for each in one.premises}
    if wanted.premise_ids is not None and premises.isdisjoint(wanted.premise_ids):
        return False
    if wanted.touching is None and wanted.naming is None:
        return True
    ends = {one.subject_id, one.object_id}
    if wanted.touching is not None and ends.isdisjoint(wanted.touching):
        return False
    meant = meant_by(one)
    ends |= {one.holder_id, one.target_id, meant.subject_id, meant.object_id}
    ends |= {meant.holder_id, meant.target_id}
    return wanted.naming is None or not ends.isdisjoint(wanted.naming)
