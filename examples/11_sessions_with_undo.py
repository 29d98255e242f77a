"""Go back in a generation and choose another branch: python examples/11_sessions_with_undo.py [MODEL]."""

import sys

import guideway as gw


def main(name: str = "tiny") -> list[str]:
    model = gw.load(name)
    drafts = []
    with model.session(seed=3, sampler=gw.Sampler(temperature=0.9)) as session:
        session.feed("A name for a boat: ")
        start = len(session)
        session.constrain(gw.Regex("[A-Z][a-z]{2,8} [A-Z][a-z]{2,8}"))
        session.complete(max_tokens=24)
        drafts.append(session.text)

        session.rewind(len(session) - start - 2)  # keep two tokens; KV cache, constraint and random numbers go back too
        other = session.fork(row=1)  # the same prefix with other random numbers
        session.complete(max_tokens=24)
        other.complete(max_tokens=24)
        drafts += [session.text, other.text]
        print(*drafts, sep="\n")
        print("evaluated and cached tokens:", session.counts.run, session.counts.cached)
    assert drafts[0] == drafts[1]  # the same random numbers give the same tokens
    return drafts


if __name__ == "__main__":
    main(*sys.argv[1:])
