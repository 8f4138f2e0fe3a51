"""What predict.py adds to a text is what the trained model holds for probable."""

import torch
from conftest import load, run_to_end
from tokenizers import Tokenizer

import predict
import train as training


def test_a_text_goes_on_as_the_trained_model_says(config, capsys):
    run_to_end(config, epochs=1)
    preprocessing = training.Preprocessing.fit(config)
    model = training.make_model(preprocessing)
    model.load_state_dict(load(config.run_dir / "best.pt")["model"])
    model.eval()
    # Longer than what the model looks at; and so many draws that two models do not make the same.
    tokenizer = Tokenizer.from_str(preprocessing.tokenizer)
    prompt = tokenizer.decode(training.Windows(config, "val", preprocessing).ids[:50].tolist()).splitlines()[0]
    token_ids = torch.tensor(tokenizer.encode(prompt).ids)
    generator = torch.Generator().manual_seed(3)
    for _ in range(60):
        logits = model(token_ids[None, -preprocessing.context_length :])[0, -1]
        drawn = (logits / 0.8).softmax(dim=0).multinomial(1, generator=generator)
        token_ids = torch.cat([token_ids, drawn])

    capsys.readouterr()
    checkpoint = config.run_dir / "best.pt"
    predict.main(predict.Arguments(prompt=prompt, checkpoint=checkpoint, length=60, temperature=0.8, seed=3))
    assert capsys.readouterr().out == tokenizer.decode(token_ids.tolist()) + "\n"
