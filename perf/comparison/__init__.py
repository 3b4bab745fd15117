"""What perf/compare and perf/soak are made of.

    rows      the loads, what is read off them, and what is hoped for
    brokers   processes, pinned, with a data directory of their own
    places    where brokers run: this machine as it is, a throttled disk, little memory
    phases    one measured phase, and the noise beside it
    courses   rows that are more than one phase: start, restart, cold data, users' own tools
    guests    clients beside a load that come and go, or take their answers slowly
    origins   which commit of Coretide each round is from
    results   the tables, RESULTS.md and the drawing
"""
