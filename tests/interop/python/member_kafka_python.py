"""kafka-python as a member of a group."""
from kafka import KafkaConsumer
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import CommitFailedError, RebalanceInProgressError

from member import (BOOTSTRAP, GROUP, HEARTBEAT_MS, NAME, POLL_MS, SESSION_MS, STRATEGY, TOPIC, got, is_told_to_stop,
                    numbers, say)

STRATEGIES = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}


class Listener(ConsumerRebalanceListener):
    def on_partitions_assigned(self, assigned):
        say("assigned", consumer.group_metadata().generation_id, numbers(assigned))

    def on_partitions_revoked(self, revoked):
        say("revoked", numbers(revoked))

    def on_partitions_lost(self, lost):
        say("lost", numbers(lost))


consumer = KafkaConsumer(bootstrap_servers=BOOTSTRAP, group_id=GROUP, client_id=NAME, auto_offset_reset="earliest",
                         enable_auto_commit=False, session_timeout_ms=SESSION_MS, heartbeat_interval_ms=HEARTBEAT_MS,
                         max_poll_interval_ms=POLL_MS, partition_assignment_strategy=[STRATEGIES[STRATEGY]])
consumer.subscribe([TOPIC], listener=Listener())
uncommitted = False
while not is_told_to_stop():
    polled = consumer.poll(timeout_ms=100)
    for records in polled.values():
        for record in records:
            got(record.partition, record.offset, record.value)
    if polled or uncommitted:
        try:
            consumer.commit()
            uncommitted = False
        except (CommitFailedError, RebalanceInProgressError):
            uncommitted = True
consumer.close(autocommit=False)
say("left")
