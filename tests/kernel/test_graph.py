"""Laws of the compiled graph, on random ones and on the largest."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernel.strategies import dags
from workflows.kernel.errors import CycleFound, describe_cycle
from workflows.kernel.graph import compile_graph

Dag = tuple[list[str], list[list[str]]]


@given(dags())
def test_edges_are_the_same_from_both_ends(dag: Dag) -> None:
    keys, depends_on = dag
    graph = compile_graph(keys, depends_on)
    assert graph.keys == tuple(keys)
    assert dict(graph.positions) == {key: position for position, key in enumerate(keys)}
    forward = {(source, target) for source, row in enumerate(graph.successors) for target in row}
    backward = {(source, target) for target, row in enumerate(graph.dependencies) for source in row}
    written = {(keys.index(name), target) for target, names in enumerate(depends_on) for name in names}
    assert forward == backward == written


@given(dags())
def test_in_degrees_count_dependencies_and_roots_have_none(dag: Dag) -> None:
    graph = compile_graph(*dag)
    assert graph.in_degrees == tuple(len(names) for names in dag[1])
    assert graph.roots == tuple(position for position, names in enumerate(dag[1]) if not names)
    assert graph.roots  # an acyclic graph has a beginning


@given(dags())
def test_every_task_comes_after_its_dependencies(dag: Dag) -> None:
    graph = compile_graph(*dag)
    assert sorted(graph.order) == list(range(len(graph)))
    place = {position: index for index, position in enumerate(graph.order)}
    layers = graph.layers()
    for position, needed in enumerate(graph.dependencies):
        assert all(place[dependency] < place[position] for dependency in needed)
        assert layers[position] == max((layers[dependency] + 1 for dependency in needed), default=0)


@given(dags(), st.data())
def test_descendants_come_once_without_their_sources(dag: Dag, data: st.DataObject) -> None:
    graph = compile_graph(*dag)
    sources = data.draw(st.lists(st.sampled_from(range(len(graph))), max_size=4))
    found = graph.descendants(sources)
    assert len(found) == len(set(found))
    assert set(found) == _reachable(graph.successors, sources) - set(sources)


@given(dags())
def test_descendants_come_breadth_first(dag: Dag) -> None:
    graph = compile_graph(*dag)
    for source in range(len(graph)):
        distance = _distances(graph.successors, source)
        walked = [distance[position] for position in graph.descendants([source])]
        assert walked == sorted(walked)


@given(dags())
def test_ancestors_are_the_reverse_of_descendants(dag: Dag) -> None:
    graph = compile_graph(*dag)
    sets = graph.ancestor_sets()
    for position in range(len(graph)):
        ancestors = graph.ancestors(position)
        assert ancestors == {other for other in range(len(graph)) if position in graph.descendants([other])}
        assert ancestors == {other for other in range(len(graph)) if sets[position] >> other & 1}


def _reachable(successors: tuple[tuple[int, ...], ...], sources: list[int]) -> set[int]:
    found = set(sources)
    while grown := {target for source in found for target in successors[source]} - found:
        found |= grown
    return found


def _distances(successors: tuple[tuple[int, ...], ...], source: int) -> dict[int, int]:
    distance, steps, layer = {source: 0}, 0, {source}
    while layer:
        steps += 1
        layer = {target for node in layer for target in successors[node]} - distance.keys()
        distance |= dict.fromkeys(layer, steps)
    return distance


@given(dags(), st.data())
def test_a_cycle_is_found_and_named(dag: Dag, data: st.DataObject) -> None:
    keys, depends_on = dag
    graph = compile_graph(keys, depends_on)
    start = data.draw(st.sampled_from(range(len(keys))))
    closing = data.draw(st.sampled_from([start, *graph.descendants([start])]))
    depends_on[start] = [*depends_on[start], keys[closing]]
    with pytest.raises(CycleFound) as refused:
        compile_graph(keys, depends_on)
    circle = refused.value.keys
    assert circle[0] == circle[-1]
    assert len(set(circle)) == len(circle) - 1
    for key, needed in itertools.pairwise(circle):
        assert needed in depends_on[keys.index(key)]


def test_the_message_of_a_cycle_reads_like_one() -> None:
    with pytest.raises(CycleFound, match="a -> b -> a"):
        compile_graph(["a", "b"], [["b"], ["a"]])
    with pytest.raises(CycleFound, match="a -> a"):
        compile_graph(["a"], [["a"]])


def test_a_long_circle_is_cut_in_the_middle() -> None:
    text = describe_cycle([f"t{number}" for number in range(5_000)] + ["t0"])
    assert text.startswith("t0 -> t1 -> ")
    assert text.endswith("... 4990 more ... -> t4999 -> t0")


def test_a_chain_of_ten_thousand_needs_no_stack() -> None:
    keys = [f"t{number}" for number in range(10_000)]
    graph = compile_graph(keys, [[], *([key] for key in keys[:-1])])
    assert graph.descendants([0]) == list(range(1, 10_000))
    assert graph.ancestors(9_999) == set(range(9_999))
    assert graph.layers() == tuple(range(10_000))
    assert graph.ancestor_sets()[9_999] == 2**9_999 - 1


def test_a_circle_of_ten_thousand_needs_no_stack() -> None:
    keys = [f"t{number}" for number in range(10_000)]
    with pytest.raises(CycleFound) as refused:
        compile_graph(keys, [[keys[-1]], *([key] for key in keys[:-1])])
    assert len(refused.value.keys) == 10_001


@pytest.mark.parametrize(
    ("keys", "depends_on", "message"),
    [
        (["a", "a"], [[], []], "used twice"),
        (["a"], [["b"]], "does not exist"),
        (["a", "b"], [[], ["a", "a"]], "twice"),
        (["a"], [], "1 keys"),
    ],
)
def test_what_the_format_refuses_is_a_programming_error_here(
    keys: list[str], depends_on: list[list[str]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        compile_graph(keys, depends_on)


def test_the_graph_cannot_be_changed() -> None:
    graph = compile_graph(["a"], [[]])
    with pytest.raises(AttributeError):
        graph.keys = ()  # type: ignore[misc] # the point of the test
    with pytest.raises(TypeError):
        graph.positions["b"] = 1  # type: ignore[index] # the point of the test
