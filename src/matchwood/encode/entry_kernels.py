"""Kernels that put entries of many events side by side."""

from __future__ import annotations

from matchwood.kernel.jit import kernel


@kernel
def order_entries(part_attr, part_end, rows, is_bad, start, attr, order):
    """Order entries by event; those of an event stay as they are.  Returns how many come twice.

    part_attr, part_end  int64[P], the attribute of each part of the entries, ascending, and its end
    rows    int64[m], the event of each entry
    is_bad  bool[n], events that get none
    start   int64[n + 1], zeros: gets where the entries of each event begin
    attr    int32[m], gets the attributes of the entries in order; the first start[n] count
    order   int64[m], gets which entry each is
    """
    for i in range(len(rows)):
        attr[i] = -1  # not written yet: an event is looked at before the one ahead of it is whole
        if not is_bad[rows[i]]:
            start[rows[i] + 1] += 1
    end = 0
    for e in range(1, len(start)):  # for now start[e + 1] is where the next entry of event e goes
        end, start[e] = end + start[e], end
    twice, first = 0, 0
    for p in range(len(part_attr)):
        for i in range(first, part_end[p]):
            row = rows[i]
            if not is_bad[row]:
                at = start[row + 1]
                if at > 0 and attr[at - 1] == part_attr[p] and rows[order[at - 1]] == row:
                    twice += 1
                attr[at] = part_attr[p]
                order[at] = i
                start[row + 1] = at + 1
        first = part_end[p]
    return twice
