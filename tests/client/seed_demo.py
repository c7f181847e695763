"""The demo program of the design, with the same calls: an agent that remembers its user.

Runs as it stands: KeMem is found by the environment or on this machine, the chat model by
OPENAI_BASE_URL and OPENAI_API_KEY. Each line of standard input is said to it.
"""

# ruff: noqa: T201 (a demo prints)

import sys

from openai import OpenAI

from kemem import Memory

memory = Memory()
client = OpenAI()
USER_ID = "user_001"


def chat(user_message: str) -> str:
    print(f"\nUser: {user_message}")

    # 1. Ask KeMem what it remembers that bears on this.
    memories = memory.search(user_message, user_id=USER_ID, limit=5)

    # 2. Build the prompt, with the memories in it.
    system_prompt = "You are a friendly assistant."
    system_prompt += f"\n\nWhat is remembered about the user:\n{memories}"

    # 3. Ask the model.
    response = client.chat.completions.create(
        model="gpt-4o-mini",
        messages=[
            {"role": "system", "content": system_prompt},
            {"role": "user", "content": user_message},
        ],
    )

    # 4. Take its reply.
    assistant_reply = response.choices[0].message.content
    print(f"Assistant: {assistant_reply}")

    # 5. Keep what was said.
    memory.add(
        [
            {"role": "user", "content": user_message},
            {"role": "assistant", "content": assistant_reply},
        ],
        user_id=USER_ID,
    )

    return assistant_reply


if __name__ == "__main__":
    for line in sys.stdin:
        chat(line.strip())
