"""pydantic-ai, instructor and LangChain: texts, streams, tools and structured output."""

import asyncio
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

SAY = "Ada Lovelace, 36, lives in London."


class Person(BaseModel):
    """A person."""

    name: str = Field(min_length=1, max_length=20)
    age: int = Field(ge=0, le=120)
    role: Literal["engineer", "designer"]


def checked(found: object) -> Person:
    assert isinstance(found, Person)
    assert 1 <= len(found.name) <= 20
    assert 0 <= found.age <= 120
    return found


class TestPydanticAI:
    pytestmark = pytest.mark.engine("pydantic_ai")

    def model(self, url: str, *, responses: bool) -> Any:
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        kind = OpenAIResponsesModel if responses else OpenAIChatModel
        settings: Any = {"temperature": 0.0, "max_tokens": 200}
        return kind("tiny", provider=OpenAIProvider(base_url=url, api_key="none"), settings=settings)

    @pytest.mark.parametrize("responses", [False, True])
    def test_text(self, url: str, responses: bool) -> None:
        from pydantic_ai import Agent

        found = Agent(self.model(url, responses=responses), instructions="Be short.").run_sync(SAY)
        assert isinstance(found.output, str)
        assert found.usage.output_tokens > 0

    @pytest.mark.parametrize("responses", [False, True])
    @pytest.mark.parametrize("mode", ["tool", "native"])
    def test_structured_output(self, url: str, responses: bool, mode: str) -> None:
        from pydantic_ai import Agent, NativeOutput, ToolOutput

        wanted: Any = NativeOutput(Person) if mode == "native" else ToolOutput(Person)
        agent = Agent(self.model(url, responses=responses), output_type=wanted, retries=0)
        checked(agent.run_sync(SAY).output)

    @pytest.mark.parametrize("responses", [False, True])
    def test_stream(self, url: str, responses: bool) -> None:
        from pydantic_ai import Agent, NativeOutput

        agent = Agent(self.model(url, responses=responses), output_type=NativeOutput(Person), retries=0)

        async def run() -> tuple[int, Any]:
            async with agent.run_stream(SAY) as stream:
                count = 0
                async for _ in stream.stream_output(debounce_by=None):
                    count += 1
                return count, await stream.get_output()

        count, found = asyncio.run(run())
        checked(found)
        assert count > 1

    def test_tools_are_called(self, url: str) -> None:
        from pydantic_ai import Agent, ToolOutput

        agent = Agent(self.model(url, responses=False), output_type=ToolOutput(Person), retries=3)
        calls: list[int] = []

        async def only_once(_: Any, definition: Any) -> Any:
            return None if calls else definition

        @agent.tool_plain(prepare=only_once)
        def year_of_birth(age: int) -> int:
            """Return the year of birth for an age."""
            calls.append(age)
            return 2000 - age

        found = agent.run_sync(SAY)
        checked(found.output)
        parts = [part.part_kind for message in found.all_messages() for part in message.parts]
        assert calls
        assert parts.count("tool-call") >= 1 + len(calls)


class TestInstructor:
    pytestmark = pytest.mark.engine("instructor")

    def client(self, url: str, mode: str) -> Any:
        import instructor
        import openai

        return instructor.from_openai(
            openai.OpenAI(base_url=url, api_key="none", max_retries=0), mode=getattr(instructor.Mode, mode)
        )

    def request(self) -> dict[str, Any]:
        return {
            "model": "tiny",
            "messages": [{"role": "user", "content": SAY}],
            "max_retries": 0,
            "temperature": 0,
            "max_tokens": 200,
        }

    @pytest.mark.parametrize("mode", ["TOOLS", "TOOLS_STRICT", "JSON_SCHEMA", "RESPONSES_TOOLS"])
    def test_modes(self, url: str, mode: str) -> None:
        checked(self.client(url, mode).chat.completions.create(response_model=Person, **self.request()))

    def test_partial_objects(self, url: str) -> None:
        parts = list(self.client(url, "TOOLS").chat.completions.create_partial(response_model=Person, **self.request()))
        assert len(parts) > 3
        checked(Person.model_validate(parts[-1].model_dump()))


class TestLangChain:
    pytestmark = pytest.mark.engine("langchain_openai")

    def model(self, url: str, **options: Any) -> Any:
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(
            model="tiny", base_url=url, api_key="none", max_retries=0, temperature=0, max_tokens=200, **options
        )

    @pytest.mark.parametrize("responses", [False, True])
    def test_text_and_stream(self, url: str, responses: bool) -> None:
        model = self.model(url, use_responses_api=responses)
        whole = model.invoke(SAY)
        assert whole.text
        assert whole.usage_metadata["output_tokens"] > 0
        assert "".join(part.text for part in model.stream(SAY)) == whole.text

    @pytest.mark.parametrize("responses", [False, True])
    @pytest.mark.parametrize("method", ["json_schema", "function_calling"])
    def test_structured_output(self, url: str, responses: bool, method: str) -> None:
        model = self.model(url, use_responses_api=responses)
        checked(model.with_structured_output(Person, method=method).invoke(SAY))

    def test_tools(self, url: str) -> None:
        from langchain_core.messages import HumanMessage, ToolMessage
        from langchain_core.tools import tool

        @tool
        def weather(city: Literal["Rome", "Paris"]) -> str:
            """Return the weather of a city."""
            return f"rain in {city}"

        model = self.model(url)
        asked: list[Any] = [HumanMessage(SAY)]
        reply = model.bind_tools([weather], tool_choice="weather").invoke(asked)
        (call,) = reply.tool_calls
        assert call["args"]["city"] in {"Rome", "Paris"}
        result = weather.invoke(call)
        assert isinstance(result, ToolMessage)
        assert model.bind_tools([weather], tool_choice="none").invoke([*asked, reply, result]).text

    def test_batch(self, url: str) -> None:
        found = self.model(url).with_structured_output(Person).batch([SAY] * 8)
        assert len({checked(one).model_dump_json() for one in found}) == 1
