/* One unit of a recurrent layer at one step, forward and back, included once per element type with T, CELL_FN (the
 * qualifiers of such functions) and CELL(name) defined.  Gates are n elements apart: gate g of a unit is z[g n].
 *
 * S. Hochreiter, J. Schmidhuber, "Long short-term memory", 1997; K. Cho et al., arXiv:1406.1078, 2014, with the reset
 * gate after the product, as in cuDNN and PyTorch. */

/* z: the argument of the activation. */
CELL_FN T CELL(plain)(int cell, T z)
{
	return cell == SL_CELL_RELU ? (z < 0 ? (T)0 : z) : m_tanh(z);
}

CELL_FN T CELL(plain_back)(int cell, T y, T dy)
{
	return cell == SL_CELL_RELU ? (y > 0 ? dy : (T)0) : dy * (1 - y * y);
}

/* z: sums of input, forget, candidate and output gate; becomes the gates, and the cell behind them. */
CELL_FN T CELL(lstm)(T *z, int64_t n, T before)
{
	T i = m_sigmoid(z[0]), f = m_sigmoid(z[n]), g = m_tanh(z[2 * n]), o = m_sigmoid(z[3 * n]);
	T c = f * before + i * g;
	z[0] = i;
	z[n] = f;
	z[2 * n] = g;
	z[3 * n] = o;
	z[4 * n] = c;
	return o * m_tanh(c);
}

/* dz gets the gradients with respect to the sums, *dc that with respect to the previous cell. */
CELL_FN void CELL(lstm_back)(const T *z, int64_t n, T before, T dh, T *dc, T *dz)
{
	T i = z[0], f = z[n], g = z[2 * n], o = z[3 * n], t = m_tanh(z[4 * n]);
	T d = *dc + dh * o * (1 - t * t);
	dz[0] = d * g * i * (1 - i);
	dz[n] = d * before * f * (1 - f);
	dz[2 * n] = d * i * (1 - g * g);
	dz[3 * n] = dh * t * o * (1 - o);
	*dc = d * f;
}

/* z: sums of reset and update gate, the state's part of the candidate, the input's part; becomes reset and update gate,
 * the third unchanged, the candidate. */
CELL_FN T CELL(gru)(T *z, int64_t n, T before)
{
	T r = m_sigmoid(z[0]), u = m_sigmoid(z[n]), c = m_tanh(z[3 * n] + r * z[2 * n]);
	z[0] = r;
	z[n] = u;
	z[3 * n] = c;
	return c + u * (before - c);
}

/* dx gets the gradients of the input's parts, dz those of the state's; returns the gradient that reaches the previous
 * state past the gates. */
CELL_FN T CELL(gru_back)(const T *z, int64_t n, T before, T dh, T *dx, T *dz)
{
	T r = z[0], u = z[n], c = z[3 * n], d = dh * (1 - u) * (1 - c * c);
	dx[0] = dz[0] = d * z[2 * n] * r * (1 - r);
	dx[n] = dz[n] = dh * (before - c) * u * (1 - u);
	dx[2 * n] = d;
	dz[2 * n] = d * r;
	return dh * u;
}
