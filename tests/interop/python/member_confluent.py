"""confluent-kafka as a member of a group."""
from confluent_kafka import Consumer, KafkaError, KafkaException

from member import (BOOTSTRAP, GROUP, HEARTBEAT_MS, NAME, POLL_MS, SESSION_MS, STRATEGY, TOPIC, got, is_told_to_stop,
                    numbers, say)

# What a rebalance keeps from being committed is tried again, as far as it is still ours then.
AGAIN = {KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID,
         KafkaError.STALE_MEMBER_EPOCH, KafkaError._ASSIGNMENT_LOST}

options = {"bootstrap.servers": BOOTSTRAP, "group.id": GROUP, "client.id": NAME, "auto.offset.reset": "earliest",
           "enable.auto.commit": False, "max.poll.interval.ms": POLL_MS}
if STRATEGY.startswith("consumer"):
    options["group.protocol"] = "consumer"
else:
    options.update({"partition.assignment.strategy": STRATEGY, "session.timeout.ms": SESSION_MS,
                    "heartbeat.interval.ms": HEARTBEAT_MS})
consumer = Consumer(options)
# In a pattern, which the broker matches in the consumer protocol, any letter may be the topic's last.
topic = f"^{TOPIC[:-1]}." if STRATEGY.endswith("pattern") else TOPIC
consumer.subscribe([topic], on_assign=lambda _, added: say("assigned", "-", numbers(added)),
                   on_revoke=lambda _, gone: say("revoked", numbers(gone)),
                   on_lost=lambda _, gone: say("lost", numbers(gone)))
uncommitted = False
while not is_told_to_stop():
    for message in consumer.consume(100, 0.1):
        if message.error():
            print("polling:", message.error(), flush=True)
        else:
            got(message.partition(), message.offset(), message.value())
            uncommitted = True
    if uncommitted:
        try:
            consumer.commit(asynchronous=False)
            uncommitted = False
        except KafkaException as error:
            uncommitted = error.args[0].code() in AGAIN
            if not uncommitted and error.args[0].code() != KafkaError._NO_OFFSET:
                raise
consumer.close()
say("left")
