"""Boxes in images: anchors, their targets, detections, and regions of interest.  NumPy computes them on the host."""
import numpy

from .._core import InvalidArgument
from ._host import constant, made, on_host
from .manipulation import take
from .unsupported import not_here

__all__ = ["MultiBoxPrior", "MultiBoxTarget", "MultiBoxDetection", "box_iou", "box_nms", "box_non_maximum_suppression", "bipartite_matching",
           "box_decode", "boolean_mask", "ROIAlign"]  # fmt: skip


def _each(value, n, name):
    value = tuple(value) if hasattr(value, "__iter__") else (value,) * n
    if n and len(value) != n:
        raise InvalidArgument(f"{name} has {len(value)} numbers, {n} are needed")
    return value


def MultiBoxPrior(data, sizes=(1.0,), ratios=(1.0,), clip=False, steps=(-1.0, -1.0), offsets=(0.5, 0.5)):
    """Anchor boxes around each pixel of images (n, channels, height, width): (1, boxes, 4) corners between 0 and 1."""
    height, width = data.shape[2:]
    sizes, ratios = (numpy.atleast_1d(numpy.asarray(v, numpy.float32)) for v in (sizes, ratios))
    step_y, step_x = (s if s > 0 else 1.0 / n for s, n in zip(_each(steps, 2, "steps"), (height, width)))
    y, x = ((numpy.arange(n, dtype=numpy.float32) + numpy.float32(o)) * numpy.float32(s)
            for n, o, s in zip((height, width), _each(offsets, 2, "offsets"), (step_y, step_x)))  # fmt: skip
    roots = numpy.sqrt(ratios)
    pairs = [(s, roots[0]) for s in sizes] + [(sizes[0], r) for r in roots[1:]]
    half = numpy.array([(s * height / width * r / 2, s / r / 2) for s, r in pairs], numpy.float32)
    middle = numpy.stack(numpy.meshgrid(x, y), -1).reshape((-1, 1, 2))
    boxes = numpy.concatenate([middle - half, middle + half], -1).reshape((1, -1, 4))
    return made(numpy.clip(boxes, 0, 1) if clip else boxes, data, "float32")


def _overlaps(a, b, eps=0.0):
    """The intersections over the unions of boxes by corners."""
    lows, highs = numpy.maximum(a[..., :, None, :2], b[..., None, :, :2]), numpy.minimum(a[..., :, None, 2:4], b[..., None, :, 2:4])
    inside = numpy.prod(numpy.maximum(highs - lows, 0), -1)
    areas = [numpy.prod(numpy.maximum(v[..., 2:4] - v[..., :2], 0), -1) for v in (a, b)]
    union = areas[0][..., :, None] + areas[1][..., None, :] - inside
    return numpy.where(union > 0, inside / numpy.where(union > 0, union, 1), 0)


def _corners(boxes, kind):
    if kind == "corner":
        return boxes
    if kind != "center":
        raise InvalidArgument(f"format is {kind!r}; these are corner and center")
    return numpy.concatenate([boxes[..., :2] - boxes[..., 2:4] / 2, boxes[..., :2] + boxes[..., 2:4] / 2], -1)


def box_iou(lhs, rhs, format="corner"):
    """The intersection over the union of each box of lhs and each of rhs."""
    if (axes := lhs.ndim + rhs.ndim - 2) > 8:
        raise not_here(f"box_iou with a result of {axes} axes", "arrays with at most 10 axes together")

    def compute(a, b):
        found = _overlaps(_corners(a.reshape((-1, 4)), format), _corners(b.reshape((-1, 4)), format))
        return found.reshape(a.shape[:-1] + b.shape[:-1])

    return constant(compute, lhs, rhs)


# ---- targets


def _matched(overlaps, threshold):
    """(the box of each anchor or -1, its overlap): first each box gets the best anchor, then overlaps above the threshold count."""
    anchors, boxes = overlaps.shape
    found, left = numpy.full(anchors, -1), overlaps.copy()
    for _ in range(boxes):
        at = numpy.unravel_index(left.argmax(), left.shape)
        if left[at] <= 1e-6:
            break
        found[at[0]] = at[1]
        left[at[0]], left[:, at[1]] = -1, -1
    best = overlaps.argmax(1)
    high = overlaps[numpy.arange(anchors), best]
    if threshold > 0:
        found = numpy.where((found < 0) & (high > threshold), best, found)
    return found, high


def _hard_negatives(matched, high, scores, ratio, thresh):
    """The anchors without a box that a network finds hardest."""
    positives = int((matched >= 0).sum())
    count = min(int(positives * ratio), len(matched) - positives)
    background = numpy.exp(scores[0] - scores.max(0)) / numpy.exp(scores - scores.max(0)).sum(0)
    candidates = numpy.flatnonzero((matched < 0) & (high < thresh))
    return candidates[numpy.argsort(background[candidates], kind="stable")[:count]]


def _encoded(anchors, boxes, variances):
    size, wanted = anchors[:, 2:] - anchors[:, :2], boxes[:, 2:] - boxes[:, :2]
    shift = ((boxes[:, :2] + boxes[:, 2:]) - (anchors[:, :2] + anchors[:, 2:])) / 2 / size
    return numpy.concatenate([shift, numpy.log(wanted / size)], 1) / variances


def MultiBoxTarget(anchor, label, cls_pred, overlap_threshold=0.5, ignore_label=-1.0, negative_mining_ratio=-1.0, negative_mining_thresh=0.5,
                   minimum_negative_samples=0, variances=(0.1, 0.1, 0.2, 0.2)):
    """[offsets (n, 4·boxes), mask of the offsets, classes (n, boxes)] that a network is to predict for its anchors;
    minimum_negative_samples has no effect, as in MXNet."""
    variances = numpy.asarray(_each(variances, 4, "variances"), numpy.float32)

    def one(anchors, labels, scores):
        count = len(anchors)
        offsets, mask, classes = numpy.zeros((count, 4)), numpy.zeros((count, 4)), numpy.full(count, float(ignore_label))
        labels = labels[: next((i for i, row in enumerate(labels) if row[0] == -1), len(labels))]
        if not len(labels):
            return offsets, mask, classes
        matched, high = _matched(_overlaps(anchors, labels[:, 1:5]), overlap_threshold)
        positive = matched >= 0
        if negative_mining_ratio > 0:
            classes[_hard_negatives(matched, high, scores, negative_mining_ratio, negative_mining_thresh)] = 0
        else:
            classes[~positive] = 0
        chosen = labels[matched[positive]]
        classes[positive], mask[positive] = chosen[:, 0] + 1, 1
        offsets[positive] = _encoded(anchors[positive], chosen[:, 1:5], variances)
        return offsets, mask, classes

    def compute(anchors, labels, scores):
        rows = [one(anchors.reshape((-1, 4)), label_, score) for label_, score in zip(labels, scores)]
        offsets, mask, classes = (numpy.stack(part).astype(numpy.float32) for part in zip(*rows))
        return offsets.reshape((len(rows), -1)), mask.reshape((len(rows), -1)), classes

    return constant(compute, anchor, label, cls_pred)


# ---- detections


def _decoded(anchors, offsets, variances, clip):
    size, middle = anchors[:, 2:] - anchors[:, :2], (anchors[:, :2] + anchors[:, 2:]) / 2
    at = offsets[:, :2] * variances[:2] * size + middle
    half = numpy.exp(offsets[:, 2:] * variances[2:]) * size / 2
    boxes = numpy.concatenate([at - half, at + half], 1)
    return numpy.clip(boxes, 0, 1) if clip else boxes


def MultiBoxDetection(cls_prob, loc_pred, anchor, clip=True, threshold=0.01, background_id=0, nms_threshold=0.5, force_suppress=False,
                      variances=(0.1, 0.1, 0.2, 0.2), nms_topk=-1):
    """Detections (n, boxes, 6): class, score and corners, the best first; class -1: none, or one that overlaps with a better one."""
    if background_id != 0:
        raise not_here(f"MultiBoxDetection(background_id={background_id})", "0")
    variances = numpy.asarray(_each(variances, 4, "variances"), numpy.float32)

    def one(probabilities, offsets, anchors):
        kind = probabilities[1:].argmax(0)
        score = probabilities[1:].max(0)
        boxes = _decoded(anchors, offsets.reshape((-1, 4)), variances, clip)
        rows = numpy.concatenate([kind[:, None], score[:, None], boxes], 1)[score >= threshold]
        made_ = numpy.full((len(anchors), 6), -1.0, numpy.float32)
        made_[: len(rows)] = rows
        kept = len(rows) if nms_topk <= 0 else min(nms_topk, len(rows))
        made_[:kept] = rows[numpy.argsort(-rows[:, 1], kind="stable")][:kept]  # the rest stays in its order
        made_[kept : len(rows), 0] = -1
        if 0 < nms_threshold <= 1:
            _suppress(made_[:kept], 0, slice(2, 6), nms_threshold, force_suppress, lambda iou, limit: iou >= limit)
        return made_

    def compute(probabilities, offsets, anchors):
        return numpy.stack([one(p, o, anchors.reshape((-1, 4))) for p, o in zip(probabilities, offsets)])

    return constant(compute, cls_prob, loc_pred, anchor)


def _suppress(rows, kind, corners, threshold, force, over):
    """Sets the class of those rows to -1 that overlap with an earlier one of their class."""
    overlaps = _overlaps(rows[:, corners], rows[:, corners])
    for i in range(len(rows)):
        if rows[i, kind] >= 0:
            same = force | (rows[i + 1 :, kind] == rows[i, kind])
            rows[i + 1 :][same & over(overlaps[i, i + 1 :], threshold), kind] = -1


def _chosen_boxes(rows, thresh, least, topk, score, kind, background, force, corners):
    """The indices of the boxes that remain, the best first."""
    valid = rows[:, score] > least
    if kind >= 0:
        valid &= rows[:, kind] != background
    order = numpy.flatnonzero(valid)
    order = order[numpy.argsort(-rows[order, score], kind="stable")]
    order = order[:topk] if topk > 0 else order
    overlaps, alive = _overlaps(corners[order], corners[order]), numpy.ones(len(order), bool)
    for i in range(len(order)):
        if alive[i]:
            same = force or kind < 0 or rows[order, kind] == rows[order[i], kind]
            alive &= ~((numpy.arange(len(order)) > i) & (overlaps[i] > thresh) & same)
    return order[alive]


def _converted(boxes, source, target):
    if source == target:
        return boxes
    if target == "corner":
        return _corners(boxes, source)
    return numpy.concatenate([(boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]], -1)


def box_nms(data, overlap_thresh=0.5, valid_thresh=0, topk=-1, coord_start=2, score_index=1, id_index=-1, background_id=-1, force_suppress=False,
            in_format="corner", out_format="corner"):
    """The boxes by score without those that overlap with a better one; rows that are left over are -1."""
    at, kept = slice(coord_start, coord_start + 4), []

    def compute(values):
        flat = values.reshape((-1, *values.shape[-2:]))
        result = numpy.full(flat.shape, -1, values.dtype)
        for rows, to in zip(flat, result):
            found = _chosen_boxes(rows, overlap_thresh, valid_thresh, topk, score_index, id_index, background_id, force_suppress,
                                  _corners(rows[:, at], in_format))  # fmt: skip
            to[: len(found)] = rows[found]
            to[: len(found), at] = _converted(rows[found][:, at], in_format, out_format)
            kept.append(found)
        return result.reshape(values.shape)

    def gradient(given, _, dy):
        flat = dy.reshape((-1, *dy.shape[-2:]))
        back = numpy.zeros_like(flat)
        for rows, to, found in zip(flat, back, kept):
            to[found] = rows[: len(found)]
        return back

    return on_host(compute, gradient, data)


box_non_maximum_suppression = box_nms


def bipartite_matching(data, threshold, is_ascend=False, topk=-1):
    """[the column of each row, the row of each column] of pairs that are chosen by their score; -1: none."""

    def one(scores):
        rows, columns = (numpy.full(n, -1.0, numpy.float32) for n in scores.shape)
        order = numpy.argsort(scores.ravel() if is_ascend else -scores.ravel(), kind="stable")
        for place in order:
            i, j = divmod(int(place), scores.shape[1])
            if (scores[i, j] > threshold) if is_ascend else (scores[i, j] < threshold):
                break
            if rows[i] < 0 and columns[j] < 0:
                rows[i], columns[j] = j, i
                if topk > 0 and (rows >= 0).sum() > topk:  # MXNet's count is one higher
                    break
        return rows, columns

    def compute(values):
        pairs = [one(v) for v in values.reshape((-1, *values.shape[-2:]))]
        return tuple(numpy.stack(part).reshape((*values.shape[:-2], -1)) for part in zip(*pairs))

    return constant(compute, data)


def box_decode(data, anchors, std0=1.0, std1=1.0, std2=1.0, std3=1.0, clip=-1.0, format="center"):
    """Boxes by corners from offsets to anchors."""

    def compute(offsets, boxes):
        a = _converted(_corners(boxes, format), "corner", "center")
        middle = offsets[..., :2] * (std0, std1) * a[..., 2:] + a[..., :2]
        size = offsets[..., 2:] * (std2, std3)
        half = numpy.exp(numpy.minimum(size, clip) if clip > 0 else size) * a[..., 2:] / 2
        return numpy.concatenate([middle - half, middle + half], -1).astype(offsets.dtype)

    return constant(compute, data, anchors)


def boolean_mask(data, index, axis=0):
    """The rows (or the parts along an axis) where index is not 0; waits for it, because it determines the shape."""
    mask = index.numpy()
    if mask.ndim != 1 or mask.shape[0] != data.shape[axis]:
        raise InvalidArgument(f"boolean_mask: an index of shape {mask.shape} for an axis of length {data.shape[axis]}")
    chosen = numpy.flatnonzero(mask).astype("int32")
    if not chosen.size:
        return data.slice_axis(axis, 0, 0)
    return take(data, made(chosen, data, "int32"), axis=axis)


# ---- regions of interest


def _cut_regions(data, rois, size, scale):
    """(maxima, their places in an image) of the parts of regions."""
    n, c, height, width = data.shape
    high, wide = size
    found = numpy.zeros((len(rois), c, high, wide), data.dtype)
    places = numpy.full(found.shape, -1)
    away = lambda v: int(numpy.floor(v + 0.5)) if v >= 0 else -int(numpy.floor(-v + 0.5))  # noqa: E731
    for r, roi in enumerate(rois):
        left, top, right, bottom = (away(float(v) * scale) for v in roi[1:5])
        bins = [max(bottom - top + 1, 1) / high, max(right - left + 1, 1) / wide]
        image = data[int(roi[0])]
        for i in range(high):
            y = [min(max(int(f(k * bins[0])) + top, 0), height) for f, k in ((numpy.floor, i), (numpy.ceil, i + 1))]
            for j in range(wide):
                x = [min(max(int(f(k * bins[1])) + left, 0), width) for f, k in ((numpy.floor, j), (numpy.ceil, j + 1))]
                part = image[:, y[0] : y[1], x[0] : x[1]].reshape((c, -1))
                if part.shape[1]:
                    at = part.argmax(1)
                    found[r, :, i, j] = part[numpy.arange(c), at]
                    places[r, :, i, j] = (y[0] + at // (x[1] - x[0])) * width + x[0] + at % (x[1] - x[0])
    return found, places


def ROIPooling(data, rois, pooled_size, spatial_scale):
    """The maxima of the parts of regions (image, left, top, right, bottom) of images, pooled_size parts each."""
    size, kept = _each(pooled_size, 2, "pooled_size"), []

    def compute(values, regions):
        found, places = _cut_regions(values, regions, size, spatial_scale)
        kept.append(places)
        return found

    def gradient(given, _, dy):
        back, channels = numpy.zeros((*given[0].shape[:2], given[0].shape[2] * given[0].shape[3])), numpy.arange(given[0].shape[1])
        for roi, gradients, places in zip(given[1], dy, kept[-1]):
            for g, at in zip(gradients.reshape((len(channels), -1)).T, places.reshape((len(channels), -1)).T):
                there = at >= 0
                numpy.add.at(back[int(roi[0])], (channels[there], at[there]), g[there])
        return back, None

    return on_host(compute, gradient, data, rois)


def _samples(start, length, count, grid, size):
    """Sampling matrices of the bins of one axis: (bins, size), the mean of bilinear samples."""
    rows = numpy.zeros((count, size))
    for i in range(count):
        for k in range(grid):
            at = start + (i + (k + 0.5) / grid) * length / count
            if not -1.0 <= at <= size:
                continue
            at = min(max(at, 0), size - 1)
            low = int(at)
            rows[i, low] += (1 - (at - low)) / grid
            rows[i, min(low + 1, size - 1)] += (at - low) / grid
    return rows


def ROIAlign(data, rois, pooled_size, spatial_scale, sample_ratio=-1, position_sensitive=False, aligned=False):
    """The means of bilinear samples in the parts of regions (image, left, top, right, bottom) of images."""
    if position_sensitive:
        raise not_here("ROIAlign(position_sensitive=True)", "position_sensitive=False")
    size, (height, width) = _each(pooled_size, 2, "pooled_size"), data.shape[2:]
    half = 0.5 if aligned else 0.0

    def matrices(roi):
        left, top, right, bottom = (float(v) * spatial_scale - half for v in roi[1:5])
        lengths = [bottom - top, right - left] if aligned else [max(bottom - top, 1.0), max(right - left, 1.0)]
        grids = [sample_ratio if sample_ratio > 0 else int(numpy.ceil(v / n)) for v, n in zip(lengths, size)]
        return _samples(top, lengths[0], size[0], grids[0], height), _samples(left, lengths[1], size[1], grids[1], width)

    def compute(values, regions):
        return numpy.stack([numpy.einsum("iy,cyx,jx->cij", rows, values[int(roi[0])], columns) if roi[0] >= 0 else numpy.zeros((values.shape[1], *size))
                            for roi in regions for rows, columns in [matrices(roi)]]).astype(values.dtype)  # fmt: skip

    def gradient(given, _, dy):
        back = numpy.zeros(given[0].shape)
        for roi, g in zip(given[1], dy):
            if roi[0] >= 0:
                rows, columns = matrices(roi)
                back[int(roi[0])] += numpy.einsum("iy,cij,jx->cyx", rows, g, columns)
        return back, None

    return on_host(compute, gradient, data, rois)
