"""Decentralized scaling (Belkhiria, Tedeschi, 2019): every instance decides for itself.

One agent is one instance: a pure state machine (`agent.step`) with a view of its neighbours only.
Discrete steps (`steps`), random delays (`delays`), TCP (`tcp`) and the explorer (`explorer`) all run that one
function."""
