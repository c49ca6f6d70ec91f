"""Chat templates: ordinary ones render, hostile ones end quickly in an error."""

from __future__ import annotations

import pytest
from tests.patience import patient

from linnet.nest import NestError
from linnet.nest.text import ChatTemplate

MESSAGES = [{"role": "user", "content": "a <b> & 'c'"}]

DOUBLE = (
    "{% set ns = namespace(x='aa') %}{% for i in range(99) %}{% set ns.x = BODY %}{% endfor %}"
    "{{ ns.x }}"
)
TOWER = (
    "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(99) %}{% set ns.x = BODY %}"
    "{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}{{ ns.x }}"
)


def test_ordinary_templates() -> None:
    text = (
        "{{ bos_token }}{%- for m in messages %}\n  {%- if m.role == 'user' %}"
        "[{{ m.content | trim }}]{%- endif %}\n{%- endfor %}{{ messages | length }}"
        "{{ messages[0] | tojson }}"
        "{{ 'x'.split('/')[0].strip() }}{{ none }}{{ [1, 2] | join('-') }}{{ undefined_name }}"
        "{% for k, v in {'a': 1}.items() %}{{ k ~ v }}{% break %}{% endfor %}{{ eos_token }}"
    )
    got = ChatTemplate(text, "<s>", "</s>").render(MESSAGES)
    json = '{"role": "user", "content": "a <b> & \'c\'"}'
    assert got == f"<s>[a <b> & 'c']1{json}xNone1-2a1</s>"


@pytest.mark.parametrize(
    "text",
    [
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f(n) %}{% for i in range(9) %}{{ f(n) }}{% endfor %}{% endmacro %}{{ f(1) }}",
        DOUBLE.replace("BODY", "ns.x ~ ns.x"),
        DOUBLE.replace("BODY", "ns.x + ns.x"),
        DOUBLE.replace("BODY", "ns.x * 9"),
        DOUBLE.replace("BODY", "ns.x.replace('a', 'aa')"),
        DOUBLE.replace("BODY", "ns.x | replace('', 'aa')"),
        DOUBLE.replace("BODY", "[ns.x, ns.x] | join"),
        DOUBLE.replace("BODY", "ns.x.join([ns.x, ns.x])"),
        DOUBLE.replace("{% set ns.x = BODY %}", "{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}"),
        TOWER.replace("BODY", "[ns.x, ns.x]"),
        TOWER.replace("BODY", "(ns.x, ns.x)"),
        TOWER.replace("BODY", "{'a': ns.x, 'b': ns.x}"),
        TOWER.replace("BODY", "dict(a=ns.x, b=ns.x)"),
        TOWER.replace("BODY", "ns.x + ns.x"),
        "{{ 'a' * 10**10 }}",
        "{{ 'a' * 9999999999 }}",
        "{{ [1] * 9999999999 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ 'a'.center(9999999999) }}",
        "{{ 'a' | center(9999999999) }}",
        "{{ 'a' | indent(9999999999) }}",
        "{{ '%9999999999d' % 1 }}",
        "{{ '{:9999999999}'.format(1) }}",
        "{{ messages | tojson(indent=999999999) }}",
        "{{ range(10**7) | list }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ raise_exception.__globals__ }}",
        "{{ strftime_now.__globals__['sys'] }}",
        "{{ messages.append(1) }}",
        "{{ messages.__init__.__globals__ }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{{ raise_exception('no system role') }}",
        "{{ 1 / 0 }}",
        "{{",
        "{{ " + "(" * 5000,
        "{% for x in messages %}" * 3000,
        "x" * (300 << 10),
    ],
)
def test_hostile_templates(text: str) -> None:
    with patient():
        try:
            got = ChatTemplate(text).render(MESSAGES)
        except NestError as error:
            assert [d.code for d in error.diagnostics] == ["E5025"]
        else:
            assert got == ""  # an unknown attribute is an undefined value, and prints as nothing


def test_the_conversation_is_not_changed() -> None:
    messages = [{"role": "user", "content": "x"}]
    with pytest.raises(NestError):
        ChatTemplate("{{ messages[0].update({'role': 'y'}) }}").render(messages)
    assert messages == [{"role": "user", "content": "x"}]
