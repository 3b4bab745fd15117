"""aiokafka as a member of a group."""
import asyncio

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.errors import CommitFailedError, IllegalStateError

from member import (BOOTSTRAP, GROUP, HEARTBEAT_MS, NAME, POLL_MS, SESSION_MS, STRATEGY, TOPIC, got, is_told_to_stop,
                    numbers, say)

STRATEGIES = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


class Listener(ConsumerRebalanceListener):
    def on_partitions_assigned(self, assigned):
        say("assigned", "-", numbers(assigned))

    def on_partitions_revoked(self, revoked):
        say("revoked", numbers(revoked))


async def live():
    consumer = AIOKafkaConsumer(bootstrap_servers=BOOTSTRAP, group_id=GROUP, client_id=NAME, auto_offset_reset="earliest",
                                enable_auto_commit=False, session_timeout_ms=SESSION_MS,
                                heartbeat_interval_ms=HEARTBEAT_MS, max_poll_interval_ms=POLL_MS,
                                rebalance_timeout_ms=POLL_MS, partition_assignment_strategy=[STRATEGIES[STRATEGY]])
    consumer.subscribe([TOPIC], listener=Listener())
    await consumer.start()
    # A stall holds up whoever polls, not the loop on which heartbeats are sent.
    while not await asyncio.to_thread(is_told_to_stop):
        polled = await consumer.getmany(timeout_ms=100)
        for records in polled.values():
            for record in records:
                got(record.partition, record.offset, record.value)
        # What a rebalance kept from being committed is tried again with the next round.
        try:
            await consumer.commit()
        except (CommitFailedError, IllegalStateError) as error:
            print("not committed:", error, flush=True)
    await consumer.stop()
    say("left")


asyncio.run(live())
