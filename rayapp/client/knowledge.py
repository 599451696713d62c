"""Client calls about the typed graph."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Unpack

from rayapp.client.calls import Reader, Talk, Writer, asked, at, call, given, listed
from rayapp.client.core import Core
from rayapp.understanding.statements.records import MergeState
from rayapp.understanding.statements.requests import Direction, MergeDecision
from rayapp.understanding.statements.rules.additions import AddedKind
from rayapp.wire import knowledge

KNOWLEDGE = "/api/knowledge"


class KnowledgeCalls(Core):
    """The calls."""

    @call
    def knowledge_nodes(
        self, type: str | None = None, *, limit: int | None = None, **who: Unpack[Reader]
    ) -> Talk[tuple[knowledge.KnowledgeNodeView, ...]]:
        """Nodes of the typed graph, those that most memories name first."""
        path = asked(f"{KNOWLEDGE}/nodes", type=type, limit=limit)
        return (yield from self.reading(knowledge.KnowledgeNodesAnswer, path, **who)).nodes

    @call
    def knowledge_node(
        self, node_id: str, **who: Unpack[Reader]
    ) -> Talk[knowledge.KnowledgeNodeAnswer]:
        """One node. Raises NotFound."""
        path = at(f"{KNOWLEDGE}/nodes", node_id)
        return self.reading(knowledge.KnowledgeNodeAnswer, path, **who)

    @call
    def delete_knowledge_node(
        self, node_id: str, **who: Unpack[Writer]
    ) -> Talk[knowledge.NodeGoneAnswer]:
        """Delete a node with all that is said of it. Raises NotFound."""
        path = at(f"{KNOWLEDGE}/nodes", node_id)
        return self.writing(knowledge.NodeGoneAnswer, path, method="DELETE", **who)

    @call
    def knowledge_relationships(
        self,
        node_id: str,
        *,
        direction: Direction = "both",
        as_of: datetime | None = None,
        limit: int | None = None,
        **who: Unpack[Reader],
    ) -> Talk[tuple[knowledge.LinkedView, ...]]:
        """What is said of a node, as it stood at a moment. Raises NotFound."""
        place = at(f"{KNOWLEDGE}/nodes", node_id, "relationships")
        path = asked(
            place,
            direction=direction,
            as_of=None if as_of is None else as_of.isoformat(),
            limit=limit,
        )
        return (yield from self.reading(knowledge.RelationshipsAnswer, path, **who)).relationships

    @call
    def add_entity(
        self,
        type: str,
        name: str,
        *,
        synonyms: Sequence[str] = (),
        attributes: Mapping[str, str] | None = None,
        **who: Unpack[Writer],
    ) -> Talk[knowledge.KnowledgeNodeView]:
        """Add a node that a person vouches for, or change the one that is there."""
        body = {"type": type, "name": name, "synonyms": listed(synonyms)}
        body = given(body | {"attributes": dict(attributes) if attributes else None})
        path = f"{KNOWLEDGE}/entity"
        return (yield from self.writing(knowledge.EntityAnswer, path, body, **who)).node

    @call
    def link_nodes(
        self,
        from_id: str,
        to_id: str,
        type: str,
        *,
        valid_from: datetime | None = None,
        **who: Unpack[Writer],
    ) -> Talk[knowledge.LinkAnswer]:
        """Link two nodes. Raises NotFound, InvalidInput: it cannot hold between their types."""
        since = None if valid_from is None else valid_from.isoformat()
        body = given({"from_id": from_id, "to_id": to_id, "type": type, "valid_from": since})
        return self.writing(knowledge.LinkAnswer, f"{KNOWLEDGE}/relationships", body, **who)

    @call
    def query_knowledge(
        self, /, *, user_id: str | None = None, **question: Any
    ) -> Talk[knowledge.KnowledgeQueryAnswer]:
        """Ask the typed graph; `question`: source, relation, target and the other body fields."""
        path = f"{KNOWLEDGE}/query"
        return self.reading(knowledge.KnowledgeQueryAnswer, path, given(question), user_id=user_id)

    @call
    def knowledge_snapshot(
        self, *, as_of: datetime | None = None, limit: int | None = None, **who: Unpack[Reader]
    ) -> Talk[knowledge.SnapshotAnswer]:
        """The typed graph as nodes and links, as it stood at a moment."""
        at_time = None if as_of is None else as_of.isoformat()
        path = asked(f"{KNOWLEDGE}/snapshot", as_of=at_time, limit=limit)
        return self.reading(knowledge.SnapshotAnswer, path, **who)

    @call
    def edit_knowledge_node(
        self,
        node_id: str,
        *,
        name: str | None = None,
        synonyms: Sequence[str] | None = None,
        attributes: Mapping[str, str] | None = None,
        **who: Unpack[Writer],
    ) -> Talk[knowledge.KnowledgeNodeView]:
        """Rename a node; `synonyms` and `attributes` are all of them. Raises NotFound."""
        body = {"name": name, "synonyms": None if synonyms is None else list(synonyms)}
        body = given(body | {"attributes": None if attributes is None else dict(attributes)})
        path = at(f"{KNOWLEDGE}/nodes", node_id)
        return (
            yield from self.writing(knowledge.EntityAnswer, path, body, method="PATCH", **who)
        ).node

    @call
    def knowledge_merges(
        self,
        state: MergeState | None = None,
        *,
        node_id: str | None = None,
        limit: int | None = None,
        **who: Unpack[Reader],
    ) -> Talk[tuple[knowledge.MergeView, ...]]:
        """Merges, splits and proposals, the latest first; `node_id`: of this node."""
        path = asked(f"{KNOWLEDGE}/merges", state=state, node_id=node_id, limit=limit)
        return (yield from self.reading(knowledge.MergesAnswer, path, **who)).merges

    @call
    def merge_nodes(
        self, kept_id: str, gone_id: str, *, dry_run: bool = False, **who: Unpack[Writer]
    ) -> Talk[knowledge.MergedAnswer]:
        """Merge two nodes of one type, or tell what that would do. Raises NotFound, Conflict."""
        body = {"kept_id": kept_id, "gone_id": gone_id, "dry_run": dry_run}
        return self.writing(knowledge.MergedAnswer, f"{KNOWLEDGE}/merges", body, **who)

    @call
    def decide_merge(
        self, merge_id: str, decision: MergeDecision, **who: Unpack[Writer]
    ) -> Talk[knowledge.MergedAnswer]:
        """Accept or decline a proposal, or undo what was decided. Raises NotFound, Conflict."""
        path = at(f"{KNOWLEDGE}/merges", merge_id)
        return self.writing(knowledge.MergedAnswer, path, {"decision": decision}, **who)

    @call
    def split_node(
        self,
        node_id: str,
        memory_ids: Sequence[str],
        *,
        dry_run: bool = False,
        **who: Unpack[Writer],
    ) -> Talk[knowledge.MergedAnswer]:
        """Give what some memories say of a node to a new one. Raises NotFound, InvalidInput."""
        body = {"node_id": node_id, "memory_ids": list(memory_ids), "dry_run": dry_run}
        return self.writing(knowledge.MergedAnswer, f"{KNOWLEDGE}/splits", body, **who)

    @call
    def knowledge_ontology(
        self, version: int | None = None, **who: Unpack[Reader]
    ) -> Talk[knowledge.OntologyAnswer]:
        """Types and relations of the typed graph, also of an earlier version. Raises NotFound."""
        path = asked(f"{KNOWLEDGE}/ontology", version=version)
        return self.reading(knowledge.OntologyAnswer, path, **who)

    @call
    def propose_name(
        self,
        kind: AddedKind,
        name: str,
        words: Sequence[str],
        *,
        parent: str | None = None,
        **who: Unpack[Writer],
    ) -> Talk[knowledge.ProposalAnswer]:
        """Propose a type or a relation for the registry; it waits in the review. Raises Conflict:
        the registry has it; InvalidInput."""
        body = given({"kind": kind, "name": name, "words": listed(words), "parent": parent})
        path = f"{KNOWLEDGE}/ontology/proposals"
        return self.writing(knowledge.ProposalAnswer, path, body, **who)

    @call
    def knowledge_pages(
        self,
        type: str | None = None,
        *,
        limit: int | None = None,
        language: Literal["en", "he"] | None = None,
        **who: Unpack[Reader],
    ) -> Talk[tuple[knowledge.PageView, ...]]:
        """Standing pages of people, goals and organizations."""
        path = asked(f"{KNOWLEDGE}/pages", type=type, limit=limit, language=language)
        return (yield from self.reading(knowledge.PagesAnswer, path, **who)).pages

    @call
    def knowledge_page(
        self, node_id: str, *, language: Literal["en", "he"] | None = None, **who: Unpack[Reader]
    ) -> Talk[knowledge.PageView]:
        """The page of a node. Raises NotFound."""
        path = asked(at(f"{KNOWLEDGE}/pages", node_id), language=language)
        return (yield from self.reading(knowledge.PageAnswer, path, **who)).page
