"""Filters and tags of the console: thin fronts of `formatting` and `badges`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from platform_site.console import formatting
from platform_site.console.badges import OUTLINES, Shape, Tone, badge_for

register = template.Library()

register.filter("duration", formatting.duration)
register.filter("milliseconds", formatting.milliseconds)
register.filter("short_id", formatting.short_id)
register.filter("count", formatting.count)
register.filter("size", formatting.size)
register.filter("pretty_json", formatting.pretty_json)


@register.filter
def plural(number: int, forms: str) -> str:
    """`{{ 3|plural:"task" }}` or `{{ 3|plural:"run waits,runs wait" }}`."""
    one, _, many = forms.partition(",")
    return formatting.plural(number, one, many)


@register.filter
def since(start: datetime | None, now: datetime) -> str:
    """How long ago `start` was, as a duration."""
    return formatting.elapsed(start, None, now)


@register.filter
def until(moment: datetime | None, now: datetime) -> str:
    """How long until `moment`, as a duration; `0s` once it has passed."""
    return "" if moment is None else formatting.duration(max(moment - now, timedelta()))


@register.simple_tag
def elapsed(start: datetime | None, end: datetime | None, now: datetime) -> str:
    return formatting.elapsed(start, end, now)


@register.simple_tag
def shape(name: Shape) -> SafeString:
    """The bare outline of a state, in the colour of the text around it."""
    outline = mark_safe(OUTLINES[name])  # noqa: S308 - a constant of ours
    return format_html('<svg class="shape" viewBox="0 0 12 12" aria-hidden="true">{}</svg>', outline)


@register.simple_tag
def pill(tone: Tone, shape_name: Shape, word: str) -> SafeString:
    """A badge for something that is not a state (a count, a finding): same look, own word."""
    return format_html('<span class="badge tone-{}">{}{}</span>', tone, shape(shape_name), word)


@register.simple_tag
def state_badge(kind: str, state: str, help_text: str = "") -> SafeString:
    """Shape, word and colour of a state; `kind` is run, task, attempt, dispatch or worker."""
    look = badge_for(kind, str(state))
    return format_html(
        '<span class="badge tone-{}" data-state="{}"{}>{}{}</span>',
        look.tone,
        state,
        format_html(' title="{}"', help_text) if help_text else "",
        shape(look.shape),
        look.word,
    )


@register.simple_tag
def state_word(kind: str, state: str) -> str:
    """The word of a state alone, where the shape would only repeat itself."""
    return badge_for(kind, str(state)).word


@register.simple_tag
def tally(state: str, number: int) -> SafeString:
    """How many tasks are in a state: shape and number in its colour, then the word."""
    look = badge_for("task", str(state))
    return format_html(
        '<span class="tone-{}">{}{}</span> {}',
        look.tone,
        shape(look.shape),
        formatting.count(number),
        look.word,
    )


@register.simple_tag
def moment(value: datetime | None, style: str = "full") -> SafeString:
    """A point in time: the viewer's zone by script, UTC without it, exact UTC on hover.

    `style` is `full` (date where it is not today, and time) or `clock` (time only).
    """
    if value is None:
        return mark_safe('<span class="none">&ndash;</span>')
    exact = formatting.utc(value)
    return format_html(
        '<time datetime="{}" data-style="{}" title="{}">{}</time>',
        formatting.machine_time(value),
        style,
        exact,
        exact[11:] if style == "clock" else exact,
    )


@register.simple_tag
def identity(value: object) -> SafeString:
    """A short id that copies the whole one when clicked."""
    return format_html(
        '<button type="button" class="id" data-copy="{}" title="{}" aria-label="Copy {}">{}</button>',
        value,
        value,
        value,
        formatting.short_id(value),
    )


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a stacked bar: where it starts and how wide it is, in percent of the bar."""

    tone: str
    start: float
    width: float

    @property
    def end(self) -> float:
        return round(self.start + self.width, 2)


#: Order of the pieces of a run's bar: what is done first, what has not begun last.
_BAR_ORDER: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ok", ("succeeded",)),
    ("bad", ("failed",)),
    ("mute", ("canceled", "skipped")),
    ("run", ("running",)),
    ("wait", ("waiting_retry", "queued")),
    ("hold", ("waiting_approval",)),
)


#: One failed task in ten thousand still shows: no piece is narrower than this, in percent.
_LEAST_WIDTH = 0.6


def bar_segments(counts: Mapping[str, int], total: int) -> Sequence[Segment]:
    """Pieces of a run's progress bar from its task counters; what is left over has not begun."""
    shares = [(tone, sum(counts.get(state, 0) for state in states)) for tone, states in _BAR_ORDER]
    widths = [
        (tone, max(formatting.percent_of(number, total), _LEAST_WIDTH)) for tone, number in shares if number
    ]
    scale = min(1.0, 100 / sum(width for _, width in widths)) if widths else 1.0
    start, segments = 0.0, []
    for tone, width in widths:
        segments.append(Segment(tone, round(start, 2), round(width * scale, 2)))
        start += width * scale
    return segments


@register.inclusion_tag("console/_bar.html")
def progress_bar(counts: Mapping[str, int], total: int, done: int) -> dict[str, object]:
    """The stacked bar of a run's tasks; its spoken form is `done` of `total`."""
    return {"segments": bar_segments(counts, total), "total": total, "done": done}


@register.simple_tag
def meter(part: int, whole: int, label: str) -> SafeString:
    """A plain bar of `part` of `whole`, red when full, with its spoken form."""
    width = formatting.percent_of(part, whole)
    return format_html(
        '<svg class="meter {}" role="img" aria-label="{}: {} of {}" preserveAspectRatio="none" '
        'viewBox="0 0 100 8"><rect width="{}" height="8"/></svg>',
        "full" if whole and part >= whole else "",
        label,
        part,
        whole,
        width,
    )
