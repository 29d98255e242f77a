"""Chat templates with the constructs of those of model families. They are written for the tests, not copied."""

from __future__ import annotations

__all__ = ["TEMPLATES"]

_TOOLS_AS_JSON = "{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}"

HERMES = (
    "{% if messages[0].role == 'system' %}{% set system = messages[0].content %}{% set rest = messages[1:] %}"
    "{% else %}{% set system = '' %}{% set rest = messages %}{% endif %}"
    "{% if system or tools %}<|im_start|>system\n{{ system }}"
    "{% if tools %}\n# Tools\n<tools>\n" + _TOOLS_AS_JSON + "</tools>{% endif %}<|im_end|>\n{% endif %}"
    "{% set ns = namespace(last_user=-1) %}"
    "{% for message in rest[::-1] %}{% if ns.last_user < 0 and message.role == 'user' %}"
    "{% set ns.last_user = rest | length - loop.index %}{% endif %}{% endfor %}"
    "{% for message in rest %}"
    "{% if message.role == 'tool' %}"
    "{% if loop.first or rest[loop.index0 - 1].role != 'tool' %}<|im_start|>user{% endif %}"
    "{{ '\n' }}<tool_response>\n{{ message.content }}\n</tool_response>"
    "{% if loop.last or rest[loop.index0 + 1].role != 'tool' %}<|im_end|>\n{% endif %}"
    "{% elif message.role == 'assistant' %}<|im_start|>assistant\n"
    "{% if message.reasoning_content and loop.index0 > ns.last_user %}"
    "<think>\n{{ message.reasoning_content.strip('\\n') }}\n</think>\n\n{% endif %}"
    "{{ message.content }}"
    "{% for call in message.tool_calls or [] %}"
    "{% if not loop.first or message.content %}{{ '\\n' }}{% endif %}"
    '<tool_call>\n{"name": "{{ call.function.name }}", "arguments": '
    "{{ call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}}"
    "\n</tool_call>{% endfor %}<|im_end|>\n"
    "{% else %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
"""Hermes and Qwen: ChatML, tools in the system message, reasoning only after the last question."""

LLAMA = (
    "{{ bos_token }}"
    "{% set system = messages[0].content | trim if messages[0].role == 'system' else '' %}"
    "{% set rest = messages[1:] if messages[0].role == 'system' else messages %}"
    "<|start_header_id|>system<|end_header_id|>\n\n"
    "{% if tools is not none %}Environment: ipython\n{% endif %}"
    "Today: {{ date_string if date_string is defined else '26 Jul 2024' }}\n\n{{ system }}<|eot_id|>"
    "{% if tools is not none and rest %}<|start_header_id|>user<|end_header_id|>\n\n"
    'Respond with {"name": function name, "parameters": dictionary of arguments}.\n\n'
    "{% for tool in tools %}{{ tool | tojson(indent=4) }}\n\n{% endfor %}"
    "{{ rest[0].content | trim }}<|eot_id|>{% set rest = rest[1:] %}{% endif %}"
    "{% for message in rest %}"
    "{% if message.role == 'tool' %}<|start_header_id|>ipython<|end_header_id|>\n\n"
    "{{ message.content | tojson if message.content is mapping else message.content }}<|eot_id|>"
    "{% elif 'tool_calls' in message %}"
    "{% if message.tool_calls | length != 1 %}{{ raise_exception('one tool call at a time') }}{% endif %}"
    "<|start_header_id|>assistant<|end_header_id|>\n\n"
    '{{ \'{"name": "\' + message.tool_calls[0].function.name + \'", "parameters": \' }}'
    "{{ message.tool_calls[0].function.arguments | tojson }}{{ '}' }}<|eot_id|>"
    "{% else %}<|start_header_id|>{{ message.role }}<|end_header_id|>\n\n{{ message.content | trim }}<|eot_id|>"
    "{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
"""Llama 3: tools in the first question, one call at a time."""

MISTRAL = (
    "{% set ns = namespace(index=0) %}"
    "{% set users = messages | selectattr('role', 'equalto', 'user') | list %}"
    "{{ bos_token }}"
    "{% for message in messages %}"
    "{% if message.role == 'system' %}[SYSTEM_PROMPT]{{ message.content }}[/SYSTEM_PROMPT]"
    "{% elif message.role == 'user' %}"
    "{% if tools and message == users[-1] %}[AVAILABLE_TOOLS][{% for tool in tools %}"
    "{{ tool | tojson }}{{ ', ' if not loop.last }}{% endfor %}][/AVAILABLE_TOOLS]{% endif %}"
    "[INST]{{ message.content }}[/INST]"
    "{% elif message.role == 'assistant' and message.tool_calls is defined %}[TOOL_CALLS]["
    "{% for call in message.tool_calls %}"
    "{% if call.id is not defined or call.id | length != 9 %}{{ raise_exception('ids have 9 characters') }}{% endif %}"
    "{{ {'name': call.function.name, 'arguments': call.function.arguments, 'id': call.id} | tojson }}"
    "{{ ', ' if not loop.last }}{% endfor %}]{{ eos_token }}"
    "{% elif message.role == 'assistant' %}{{ ' ' ~ message.content ~ eos_token }}"
    "{% elif message.role == 'tool' %}[TOOL_RESULTS]{{ {'content': message.content, 'call_id': message.tool_call_id} | tojson }}"
    "[/TOOL_RESULTS]{% else %}{{ raise_exception('unknown role ' + message.role) }}{% endif %}{% endfor %}"
)
"""Mistral: tools before the last question, ids of nine characters."""

GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}"
    "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
"""Gemma 2: no system message, no tools, roles alternate."""

PHI = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' }}"
    "{% if message['role'] == 'system' and message['tools'] is defined %}"
    "{{ message['content'] + '<|tool|>' + message['tools'] + '<|/tool|>' }}{% else %}{{ message['content'] }}{% endif %}"
    "{{ '<|end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"
)
"""Phi: a template that does not read the variable `tools`."""

DEEPSEEK = (
    "{% set ns = namespace(system='', is_tool=false) %}"
    "{% for message in messages %}{% if message.role == 'system' %}{% set ns.system = ns.system + message.content %}"
    "{% endif %}{% endfor %}{{ bos_token }}{{ ns.system }}"
    "{% if tools %}\n## Tools\n" + _TOOLS_AS_JSON + "{% endif %}"
    "{% for message in messages %}"
    "{% if message.role == 'user' %}<｜User｜>{{ message.content }}"
    "{% elif message.role == 'assistant' and message.tool_calls %}<｜Assistant｜>{{ message.content or '' }}"
    "<｜tool▁calls▁begin｜>{% for call in message.tool_calls %}"
    "{{ '\\n' if not loop.first }}<｜tool▁call▁begin｜>function<｜tool▁sep｜>{{ call.function.name }}\n```json\n"
    "{{ call.function.arguments | tojson }}\n```<｜tool▁call▁end｜>{% endfor %}<｜tool▁calls▁end｜>{{ eos_token }}"
    "{% elif message.role == 'assistant' %}<｜Assistant｜>{{ message.content.split('</think>')[-1] }}{{ eos_token }}"
    "{% elif message.role == 'tool' %}"
    "{{ '<｜tool▁outputs▁begin｜>' if loop.first or messages[loop.index0 - 1].role != 'tool' }}"
    "<｜tool▁output▁begin｜>{{ message.content }}<｜tool▁output▁end｜>"
    "{{ '<｜tool▁outputs▁end｜>' if loop.last or messages[loop.index0 + 1].role != 'tool' }}"
    "{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<｜Assistant｜>{{ '<think>\\n' if thinking is defined and thinking }}{% endif %}"
)
"""DeepSeek: special markers; reasoning is removed from earlier replies."""

HARMONY = (
    "{% macro schema(parameters) %}{% for name, one in parameters.properties.items() %}"
    "{% if one.description %}// {{ one.description }}\n{% endif %}"
    "{{ name }}{{ '' if name in parameters.required else '?' }}: {{ one.type }},\n{% endfor %}{% endmacro %}"
    "<|start|>system<|message|>Reasoning: {{ reasoning_effort | default('medium') }}\n"
    "Today: {{ strftime_now('%Y')[:2] }}<|end|>"
    "{% set rest = messages[1:] if messages[0].role in ['system', 'developer'] else messages %}"
    "{% if messages[0].role in ['system', 'developer'] or tools %}<|start|>developer<|message|>"
    "{{ messages[0].content if messages[0].role in ['system', 'developer'] }}"
    "{% if tools %}\nnamespace functions {\n{% for tool in tools %}{% set tool = tool.function %}"
    "type {{ tool.name }} = (_: {\n{{ schema(tool.parameters) }}}) => any;\n{% endfor %}}{% endif %}<|end|>{% endif %}"
    "{% set ns = namespace(name='') %}{% for message in rest %}"
    "{% if message.role == 'assistant' and message.tool_calls %}{% set call = message.tool_calls[0].function %}"
    "{% set ns.name = call.name %}"
    "{% if message.thinking %}<|start|>assistant<|channel|>analysis<|message|>{{ message.thinking }}<|end|>{% endif %}"
    "<|start|>assistant<|channel|>commentary to=functions.{{ call.name }} <|constrain|>json<|message|>"
    "{{ call.arguments | tojson }}<|call|>"
    "{% elif message.role == 'assistant' %}<|start|>assistant<|channel|>final<|message|>{{ message.content }}<|end|>"
    "{% elif message.role == 'tool' %}<|start|>functions.{{ ns.name }} to=assistant<|channel|>commentary<|message|>"
    "{{ message.content | tojson }}<|end|>"
    "{% else %}<|start|>{{ message.role }}<|message|>{{ message.content }}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)
"""gpt-oss (Harmony): channels, tools as TypeScript, reasoning as `thinking`."""

TEMPLATES = {
    "hermes": HERMES,
    "llama": LLAMA,
    "mistral": MISTRAL,
    "gemma": GEMMA,
    "phi": PHI,
    "deepseek": DEEPSEEK,
    "harmony": HARMONY,
}
