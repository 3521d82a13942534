"""Client programs do with the fork, and with the plug-in, what they do with stock: docs/clients.md says what is compared.

An unlisted difference is a failure, and so is a listed one (differences.toml) that no longer exists.
"""

import pytest
from compare import complaints, differences, known
from runs import CLIENTS


def cases():
    return [pytest.param(it, id=it.name, marks=[pytest.mark.quick] if it.quick else []) for it in CLIENTS]


@pytest.mark.parametrize("client", cases())
def test_as_with_stock(client, ways, run, request):
    entries, said, properties = known(), [], request.node.user_properties
    all = {way: run(client, way) for way in ways}
    stock = all["stock"]
    cells = [f"{it.seconds:>9.1f}" for it in all.values()]
    cells += [f"{it.report['peak_pinned'] / (1 << 20):>9.1f}" if it.report else f"{'-':>9}" for it in all.values()]
    properties.append(("line", f"{client.name:<24}{''.join(cells)}  {', '.join(ways)}: seconds; pinned at most, MiB"))
    for way, it in all.items():
        properties.append((way, f"{it.end}, {it.seconds} s, {it.report}"))
    assert stock.succeeded, f"it fails with stock, so nothing can be compared: {stock.end}\n{stock.last_words}"
    for way in list(ways)[1:]:
        found = complaints(client.name, way, differences(stock, all[way]), entries)
        said += [f"{way}: {it}" for it in found]
        if found and not all[way].succeeded:
            said.append(f"{way}, last words:\n{all[way].last_words}")
    assert not said, "\n".join(said)
