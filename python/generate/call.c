/* The module starling._call, a part of the extension: a program on PyTorch's tensors, computed in the calling thread, in
 * one call from Python.  PyTorch says where a tensor lies, of which type and shape, through the table of functions that
 * DLPack defines (__dlpack_c_exchange_api__); methods of PyTorch's classes, which setup is given, say the rest. */

/* ---- DLPack's structures, version 1 --------------------------------------------------------------------------------- */

struct dl_tensor {
	void *data;
	int32_t device, device_id; /* 1: main memory */
	int32_t ndim;
	uint8_t code, bits;
	uint16_t lanes;
	int64_t *shape, *strides;
	uint64_t offset;
};

struct dl_exchange {
	uint32_t major, minor;
	const void *previous;
	void (*allocator)(void), (*from_object)(void), (*to_object)(void);
	int (*describe)(void *object, struct dl_tensor *);
	void (*stream)(void);
};

/* ---- PyTorch -------------------------------------------------------------------------------------------------------- */

static struct {
	const struct dl_exchange *exchange;
	PyObject *tensor;                    /* the type */
	PyObject *empty;                     /* a function of shape, strides, type */
	PyObject *storage, *offset, *is_neg; /* methods of tensors */
	PyObject *nbytes;                    /* a method of storages */
	PyObject *resized, *failed;          /* raise errors: of a tensor; of the engine */
} torch;
static long stops; /* of the engine */

enum { AXES = 6, FEW = 128 };

struct take { /* an input */
	PyObject *constant;
	Py_ssize_t place; /* among the arguments, unless it is a constant */
	int64_t size, shape[AXES];
	int ndim, code, bits;
};

struct make { /* a result: the arguments of empty; NULL: of a piece of memory that the program keeps */
	PyObject *arguments;
};

enum { ALWAYS, ARGUMENT, RESULT };

struct give { /* an element of the list that a call returns */
	PyObject *constant;
	Py_ssize_t place;
	int kind;
};

struct caller {
	PyObject_HEAD PyObject *owner; /* of the plan */
	sl_plan *plan;
	PyObject *check,
	        *put; /* None, or functions: of the arguments, raises an error; of the results, puts pieces of memory there */
	struct take *takes;
	struct make *makes;
	struct give *gives;
	Py_ssize_t ntakes, nmakes, ngives;
	long stops; /* when the plan was made */
};

/* ---- a call --------------------------------------------------------------------------------------------------------- */

/* A number that a method of this object returns, or -1. */
static Py_ssize_t number_of(PyObject *method, PyObject *object)
{
	PyObject *found = PyObject_CallFunctionObjArgs(method, object, NULL);
	Py_ssize_t n = found ? PyLong_AsSsize_t(found) : -1;
	Py_XDECREF(found);
	return n;
}

/* The bytes of a tensor's storage from the tensor's first element on; -1: an error. */
static Py_ssize_t bytes_behind(PyObject *tensor, int bits)
{
	PyObject *storage = PyObject_CallFunctionObjArgs(torch.storage, tensor, NULL);
	if (!storage) return -1;
	Py_ssize_t all = number_of(torch.nbytes, storage);
	Py_DECREF(storage);
	Py_ssize_t before = all < 0 ? -1 : number_of(torch.offset, tensor);
	if (before < 0) return -1;
	before *= bits / 8;
	return all < before ? 0 : all - before;
}

static bool is_in_order(const struct dl_tensor *t)
{
	int64_t stride = 1;
	for (int i = t->ndim - 1; i >= 0; i--) {
		if (t->shape[i] != 1 && t->strides[i] != stride) return false;
		stride *= t->shape[i];
	}
	return true;
}

static bool fits(const struct take *take, const struct dl_tensor *t)
{
	if (t->device != 1 || t->ndim != take->ndim || t->code != take->code || t->bits != take->bits) return false;
	for (int i = 0; i < t->ndim; i++)
		if (t->shape[i] != take->shape[i]) return false;
	return is_in_order(t);
}

/* Views of one element may be in order, and negated all the same.  -1: an error. */
static int is_negated(const struct take *take, PyObject *tensor)
{
	if (take->size != 1) return 0;
	PyObject *found = PyObject_CallFunctionObjArgs(torch.is_neg, tensor, NULL);
	int is = found ? PyObject_IsTrue(found) : -1;
	Py_XDECREF(found);
	return is;
}

/* 1: the program can read it at *where; 0: it cannot; -1: an error. */
static int find_input(const struct take *take, PyObject *tensor, void **where)
{
	struct dl_tensor t;
	if (!PyType_IsSubtype(Py_TYPE(tensor), (PyTypeObject *)torch.tensor)) return 0;
	if (torch.exchange->describe(tensor, &t)) return -1;
	if (!fits(take, &t)) return 0;
	int negated = is_negated(take, tensor);
	if (negated) return negated < 0 ? -1 : 0;
	Py_ssize_t bytes = bytes_behind(tensor, take->bits);
	if (bytes < 0) return -1;
	if (bytes < take->size * (take->bits / 8)) {
		Py_XDECREF(PyObject_CallFunctionObjArgs(torch.resized, tensor, NULL));
		return -1;
	}
	*where = (char *)t.data + t.offset;
	return 1;
}

static int find_inputs(const struct caller *c, PyObject *args, void **in)
{
	Py_ssize_t n = PyList_Size(args);
	int found = 1;
	for (Py_ssize_t i = 0; i < c->ntakes && found > 0; i++) {
		const struct take *take = &c->takes[i];
		if (!take->constant && take->place >= n) return 0;
		found = find_input(take, take->constant ? take->constant : PyList_GetItem(args, take->place), &in[i]);
	}
	return found;
}

/* A list of tensors for the results; NULL: an error. */
static PyObject *new_results(const struct caller *c)
{
	PyObject *results = PyList_New(c->nmakes);
	for (Py_ssize_t i = 0; results && i < c->nmakes; i++) {
		PyObject *arguments = c->makes[i].arguments, *one;
		if (!arguments) Py_INCREF(one = Py_None);
		else one = PyObject_Call(torch.empty, arguments, NULL);
		if (one) PyList_SetItem(results, i, one);
		else Py_CLEAR(results);
	}
	PyObject *done = results && c->put != Py_None ? PyObject_CallFunctionObjArgs(c->put, results, NULL) : NULL;
	if (results && c->put != Py_None && !done) Py_CLEAR(results);
	Py_XDECREF(done);
	return results;
}

static int find_results(PyObject *results, void **out)
{
	for (Py_ssize_t i = 0; i < PyList_Size(results); i++) {
		struct dl_tensor t;
		if (torch.exchange->describe(PyList_GetItem(results, i), &t)) return -1;
		out[i] = (char *)t.data + t.offset;
	}
	return 0;
}

static PyObject *returned(const struct caller *c, PyObject *args, PyObject *results)
{
	PyObject *list = PyList_New(c->ngives);
	for (Py_ssize_t i = 0; list && i < c->ngives; i++) {
		const struct give *g = &c->gives[i];
		PyObject *one =
		        g->kind == ALWAYS ? g->constant : PyList_GetItem(g->kind == RESULT ? results : args, g->place);
		Py_XINCREF(one);
		if (one) PyList_SetItem(list, i, one);
		else Py_CLEAR(list);
	}
	return list;
}

enum { NUMBERS = 4 };

/* numbers: a tuple or list of (name, number), or NULL.  Returns how many there are; -1: an error. */
static int read_numbers(PyObject *numbers, struct sl_plan_number *found)
{
	Py_ssize_t n = numbers ? PySequence_Size(numbers) : 0;
	if (n > NUMBERS) return PyErr_SetString(PyExc_ValueError, "too many numbers"), -1;
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *pair = PySequence_GetItem(numbers, i);
		if (pair) found[i].name = PyBytes_AsString(PyTuple_GetItem(pair, 0)); /* the caller keeps it alive */
		if (pair) found[i].value = PyFloat_AsDouble(PyTuple_GetItem(pair, 1));
		Py_XDECREF(pair);
		if (PyErr_Occurred()) return -1;
	}
	return (int)n;
}

/* memory: of the inputs and, behind them, of the results.  Other threads of Python run meanwhile. */
static enum sl_status compute(const struct caller *c, void **memory, const struct sl_plan_number *numbers, int count)
{
	PyThreadState *state = PyEval_SaveThread();
	enum sl_status s =
	        sl_plan_call_at("torch.compile", c->plan, memory, (int)c->ntakes, numbers, count, memory + c->ntakes);
	PyEval_RestoreThread(state);
	return s;
}

/* Computes the program; gives the arguments up, as PyTorch expects.  None: the engine queues tasks now. */
static PyObject *computed(const struct caller *c, PyObject *args, PyObject *numbers, void **memory)
{
	struct sl_plan_number named[NUMBERS];
	int count = read_numbers(numbers, named);
	PyObject *results = count < 0 ? NULL : new_results(c), *list = NULL;
	if (!results) return NULL;
	if (!find_results(results, memory + c->ntakes)) {
		enum sl_status s = compute(c, memory, named, count);
		list = s == SL_OK ? returned(c, args, results) : PyObject_CallFunction(torch.failed, "i", (int)s);
		if (s == SL_OK && list) PyList_SetSlice(args, 0, PyList_Size(args), NULL);
	}
	Py_DECREF(results);
	return list;
}

static PyObject *run(const struct caller *c, PyObject *args, PyObject *numbers, void **memory)
{
	int found = find_inputs(c, args, memory);
	if (found < 0) return NULL;
	if (!found) Py_RETURN_NONE;
	if (c->check != Py_None) {
		PyObject *checked = PyObject_CallFunctionObjArgs(c->check, args, NULL);
		if (!checked) return NULL;
		Py_DECREF(checked);
	}
	return computed(c, args, numbers, memory);
}

/* caller(arguments, numbers=()): the results in a list, after which that of the arguments is empty; None if the
 * arguments, or the engine, want the general way. */
static PyObject *caller_call(PyObject *self, PyObject *given, PyObject *named)
{
	const struct caller *c = (const struct caller *)self;
	void *few[FEW], **memory = few;
	PyObject *args, *numbers = NULL, *found;
	(void)named;
	if (!PyArg_UnpackTuple(given, "call", 1, 2, &args, &numbers)) return NULL;
	if (!PyList_Check(args)) return PyErr_SetString(PyExc_TypeError, "the arguments are no list"), NULL;
	if (c->stops != stops || !sl_is_initialized()) Py_RETURN_NONE;
	if (c->ntakes + c->nmakes > FEW) memory = malloc((size_t)(c->ntakes + c->nmakes) * sizeof *memory);
	if (!memory) return PyErr_NoMemory();
	found = run(c, args, numbers, memory);
	if (memory != few) free(memory);
	return found;
}

/* ---- its making ----------------------------------------------------------------------------------------------------- */

static void caller_free(PyObject *self)
{
	struct caller *c = (struct caller *)self;
	PyTypeObject *type = Py_TYPE(self);
	for (Py_ssize_t i = 0; c->takes && i < c->ntakes; i++) Py_XDECREF(c->takes[i].constant);
	for (Py_ssize_t i = 0; c->makes && i < c->nmakes; i++) Py_XDECREF(c->makes[i].arguments);
	for (Py_ssize_t i = 0; c->gives && i < c->ngives; i++) Py_XDECREF(c->gives[i].constant);
	free(c->takes);
	free(c->makes);
	free(c->gives);
	Py_XDECREF(c->owner);
	Py_XDECREF(c->check);
	Py_XDECREF(c->put);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyType_Slot caller_slots[] = {
        {Py_tp_call, caller_call},
        {Py_tp_dealloc, caller_free},
        {0, NULL},
};
static PyType_Spec caller_spec = {"starling._call.Caller", sizeof(struct caller), 0, Py_TPFLAGS_DEFAULT, caller_slots};
static PyTypeObject *caller_type;

static int read_shape(struct take *t, PyObject *shape)
{
	if (!PyTuple_Check(shape) || PyTuple_Size(shape) > AXES)
		return PyErr_SetString(PyExc_ValueError, "a shape"), -1;
	t->ndim = (int)PyTuple_Size(shape);
	t->size = 1;
	for (int i = 0; i < t->ndim; i++) t->size *= t->shape[i] = PyLong_AsSsize_t(PyTuple_GetItem(shape, i));
	return PyErr_Occurred() ? -1 : 0;
}

/* (place or constant, shape, code, bits) */
static int read_take(struct take *t, PyObject *from)
{
	PyObject *place, *shape;
	if (!PyArg_ParseTuple(from, "OOii", &place, &shape, &t->code, &t->bits)) return -1;
	if (PyLong_Check(place)) t->place = PyLong_AsSsize_t(place);
	else Py_INCREF(t->constant = place);
	return read_shape(t, shape);
}

/* (shape, strides, type), or None */
static int read_make(struct make *m, PyObject *from)
{
	if (from != Py_None) Py_INCREF(m->arguments = from);
	return 0;
}

/* (None, a constant), (True, the number of a result) or (False, the number of an argument) */
static int read_give(struct give *g, PyObject *from)
{
	PyObject *kind, *x;
	if (!PyArg_ParseTuple(from, "OO", &kind, &x)) return -1;
	g->kind = kind == Py_None ? ALWAYS : kind == Py_True ? RESULT : ARGUMENT;
	if (kind == Py_None) Py_INCREF(g->constant = x);
	else g->place = PyLong_AsSsize_t(x);
	return PyErr_Occurred() ? -1 : 0;
}

static int read_all(struct caller *c, PyObject *takes, PyObject *makes, PyObject *gives)
{
	c->ntakes = PyList_Size(takes), c->nmakes = PyList_Size(makes), c->ngives = PyList_Size(gives);
	c->takes = calloc((size_t)c->ntakes + 1, sizeof *c->takes);
	c->makes = calloc((size_t)c->nmakes + 1, sizeof *c->makes);
	c->gives = calloc((size_t)c->ngives + 1, sizeof *c->gives);
	if (!c->takes || !c->makes || !c->gives) return PyErr_NoMemory(), -1;
	int s = 0;
	for (Py_ssize_t i = 0; !s && i < c->ntakes; i++) s = read_take(&c->takes[i], PyList_GetItem(takes, i));
	for (Py_ssize_t i = 0; !s && i < c->nmakes; i++) s = read_make(&c->makes[i], PyList_GetItem(makes, i));
	for (Py_ssize_t i = 0; !s && i < c->ngives; i++) s = read_give(&c->gives[i], PyList_GetItem(gives, i));
	return s;
}

/* caller(owner of the plan, its address, takes, makes, gives, check, put) */
static PyObject *new_caller(PyObject *module, PyObject *from)
{
	PyObject *owner, *takes, *makes, *gives, *check, *put;
	unsigned long long plan;
	(void)module;
	if (!PyArg_ParseTuple(from, "OKO!O!O!OO", &owner, &plan, &PyList_Type, &takes, &PyList_Type, &makes,
	                      &PyList_Type, &gives, &check, &put))
		return NULL;
	struct caller *c = (struct caller *)PyType_GenericAlloc(caller_type, 0);
	if (!c) return NULL;
	c->plan = (sl_plan *)(uintptr_t)plan;
	c->stops = stops;
	Py_INCREF(c->owner = owner);
	Py_INCREF(c->check = check);
	Py_INCREF(c->put = put);
	if (read_all(c, takes, makes, gives)) Py_CLEAR(c);
	return (PyObject *)c;
}

/* setup(table of DLPack, type of tensors, empty, untyped_storage, storage_offset, is_neg, nbytes, resized, failed):
 * whether the table is of a version that is known here. */
static PyObject *setup(PyObject *module, PyObject *from)
{
	PyObject *table, **parts[] = {&torch.tensor, &torch.empty,  &torch.storage, &torch.offset,
	                              &torch.is_neg, &torch.nbytes, &torch.resized, &torch.failed};
	(void)module;
	if (!PyArg_ParseTuple(from, "OOOOOOOOO", &table, parts[0], parts[1], parts[2], parts[3], parts[4], parts[5],
	                      parts[6], parts[7]))
		return NULL;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) Py_INCREF(*parts[i]);
	torch.exchange = PyCapsule_GetPointer(table, "dlpack_exchange_api");
	if (!torch.exchange) return NULL;
	return PyBool_FromLong(torch.exchange->major == 1 && torch.exchange->describe);
}

/* Called when the engine has stopped: callers that were made before return None from now on.  Returns the number of stops. */
static PyObject *stopped(PyObject *module, PyObject *none)
{
	(void)module, (void)none;
	return PyLong_FromLong(++stops);
}

static PyMethodDef call_functions[] = {
        {"caller", new_caller, METH_VARARGS, NULL},
        {"setup", setup, METH_VARARGS, NULL},
        {"stopped", stopped, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL},
};
static struct PyModuleDef call_module = {
        PyModuleDef_HEAD_INIT, "starling._call", NULL, -1, call_functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__call(void)
{
	PyObject *module = PyModule_Create(&call_module);
	if (!caller_type) caller_type = (PyTypeObject *)PyType_FromSpec(&caller_spec);
	if (module && !caller_type) Py_CLEAR(module);
	return module;
}
