"""Cells of gluon-chapters.py: recurrent networks from scratch."""
from .base import *  # noqa: F403


@cell
def recurrent_network_from_scratch():
    vocab, hidden, batch, steps = 7, 6, 2, 5
    X, Y = nd.array(source.randint(0, vocab, (batch, steps))), nd.array(source.randint(0, vocab, (batch, steps)))

    def to_onehot(X, size):
        return [nd.one_hot(x, size) for x in X.T]

    W_xh, W_hh, W_hq = random(vocab, hidden, scale=0.1), random(hidden, hidden, scale=0.1), random(hidden, vocab, scale=0.1)
    b_h, b_q = nd.zeros(hidden), nd.zeros(vocab)
    params = [W_xh, W_hh, b_h, W_hq, b_q]
    for param in params:
        param.attach_grad()

    def rnn(inputs, state, params):
        (H,) = state
        outputs = []
        for X in inputs:
            H = nd.tanh(nd.dot(X, W_xh) + nd.dot(H, W_hh) + b_h)
            outputs.append(nd.dot(H, W_hq) + b_q)
        return outputs, (H,)

    def grad_clipping(params, theta):
        norm = nd.array([0])
        for param in params:
            norm += (param.grad**2).sum()
        norm = norm.sqrt().asscalar()
        if norm > theta:
            for param in params:
                param.grad[:] *= theta / norm
        return norm

    loss, state, norms = gloss.SoftmaxCrossEntropyLoss(), (nd.zeros((batch, hidden)),), []
    for _ in range(4):
        for s in state:
            s.detach()
        with autograd.record():
            outputs, state = rnn(to_onehot(X, vocab), state, params)
            outputs = nd.concat(*outputs, dim=0)
            y = Y.T.reshape((-1,))
            l = loss(outputs, y).mean()
        l.backward()
        norms.append(grad_clipping(params, 0.01))
        for p in params:
            p[:] = p - 10 * p.grad
    return math.exp(l.asscalar()), numpy.array(norms), *params


@cell
def gated_units_from_scratch():
    n, h = 4, 3
    X, H, C = random(5, 2, n), nd.zeros((2, h)), nd.zeros((2, h))
    W = [[random(n, h, scale=0.3), random(h, h, scale=0.3), nd.zeros(h)] for _ in range(4)]
    for gate in W:
        for p in gate:
            p.attach_grad()
    with autograd.record():
        outputs = []
        for x in X:
            i, f, o = [nd.sigmoid(nd.dot(x, a) + nd.dot(H, b) + c) for a, b, c in W[:3]]
            new = nd.tanh(nd.dot(x, W[3][0]) + nd.dot(H, W[3][1]) + W[3][2])
            C = f * C + i * new
            H = o * C.tanh()
            outputs.append(H)
        l = nd.stack(*outputs).sum()
    l.backward()
    return l, nd.stack(*outputs), W[0][0].grad, W[3][1].grad, C


@cell
def attention_by_hand():
    def masked_softmax(X, valid_length):
        shape = X.shape
        valid = valid_length.repeat(shape[1], axis=0)
        X = nd.SequenceMask(X.reshape((-1, shape[-1])), valid, True, axis=1, value=-1e6)
        return nd.softmax(X).reshape(shape)

    q, k, v = random(2, 3, 4), random(2, 5, 4), random(2, 5, 6)
    scores = nd.batch_dot(q, k, transpose_b=True) / math.sqrt(4)
    weights = masked_softmax(scores, nd.array([2, 4]))
    emb = nn.Embedding(6, 4)
    emb.initialize()
    words = nd.array([[1, 2], [4, 0]])
    equal_weights(emb, words)
    norm = nn.LayerNorm()
    norm.initialize()
    return weights, nd.batch_dot(weights, v), emb(words), norm(q), nd.softmax(q, axis=1), nd.log_softmax(q), nn.Dense(3, flatten=False, in_units=4).weight.shape
