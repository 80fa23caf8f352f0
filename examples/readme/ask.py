r"""The first example of README: prints 1 if the model answers right. The model is a random generator.

thresher run --at-least 90% --tolerance 2% --arms prompts.txt --cases 500 --workers 8 --seed 1 -- \
    python ask.py {arm} {case}
"""

import random
import sys

RATES = {
    "terse": 0.97,
    "cot": 0.99,
    "few-shot": 0.96,
    "polite": 0.93,
    "json": 0.86,
    "plain": 0.8,
    "shout": 0.72,
    "riddle": 0.55,
}

prompt, question = sys.argv[1:]
print(int(random.Random(f"{prompt} {question}").random() < RATES[prompt]))  # noqa: S311 - not for secrets
