"""The gateway: an HTTP server between an assistant and its provider that sends the manager's view instead of the whole conversation.

1. An address begins with the name of a wire format: `/anthropic/v1/messages` goes to Anthropic's upstream. There is one upstream a name,
   set at the start, and nothing else can be reached (`upstreams.py`).
2. A request that carries a conversation is read by its wire format (`wire_format.py` and a file per format) and fitted by `windows.py`.
   Every other request passes through.
3. Only messages change. If the view is the whole conversation, the client's own bytes go upstream. Otherwise the same JSON goes, with other
   messages. The client's cache marks stay on the blocks that stay (`cache_marks.py`). A view has no results that answer no call, so a
   conversation that the upstream would refuse for one is mended.
4. A view is a function of the request: the conversation, the model, the tools and the options. A worker remembers conversations only to
   save work, so workers are interchangeable. No summary is written: a summary is not a function of the request.
5. The upstream's answer is relayed as it comes: status, headers and bytes (`relay.py`). Only a refusal of a prompt that is too long is
   read: a smaller view is sent once, before the client has seen anything. The worker then keeps the conversation below that size.
   Other workers learn it from a store that they share (`shared_refusals.py`), else from a refusal of their own (docs/limits.md). With a
   store, a view is a function of the request and of these refusals. No request waits for the store for long, or fails with it.
6. With `recall`, a request whose view lacks something gets the recall tool, if it has tools already. Tools stand before the messages, so
   the provider's cache breaks once for it: at the first trim, where it breaks anyway. Removed content stays out, so the tool stays, too.
   The gateway answers the tool's calls (`recalling.py`) and hides them (`joined_answer.py`). The next request does not have them, and any
   worker may get it. Without the tool, placeholders name no ids.
7. Whatever goes wrong here, the client's own request goes upstream unchanged, unless the gateway is strict.
8. Nothing of a request is logged, stored or shown. `ledger.py` counts: numbers only. `metrics.py` writes them for Prometheus. Only a
   `Recorder` writes requests to disk, without the keys they came with, and delays or harms no answer (`recording.py`).
9. The page at `/` has figures of the latest conversations, in bounded memory (`history.py`). A request is added when its answer begins
   (`watch.py`). The usage in the answer is read as it passes (`usage_reader.py`) and priced after it has ended (`unmanaged.py`). Only a
   browser that its user sent here gets the page (`foreign.py`). Only figures and the names of clients and models are on it.
"""
