// kafkajs against a broker: every codec it knows is written, and the life of a topic.
//
// node interop.js BOOTSTRAP RECORDS produce TOPIC CODEC    creates the topic and writes it, for another client to read
// node interop.js BOOTSTRAP RECORDS delete TOPIC
// node interop.js BOOTSTRAP RECORDS admin
'use strict'
const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, Partitioners, logLevel } = require('kafkajs')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')

const PARTITIONS = 6
const codecs = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy }
const [bootstrap, count, mode, topic, codec] = process.argv.slice(2)
const records = Number(count)
const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING })
let failed = false

function check(holds, text) {
  if (!holds) throw new Error(text)
}

function expected(index) {
  return {
    partition: index % PARTITIONS,
    key: index % 97 === 0 ? null : `key-${index}`,
    value: index % 97 === 1 ? null : `value-${index}-${'x'.repeat((37 * index) % 300)}`,
    headers: { index: String(index), codec, empty: '' },
  }
}

async function until(what, condition) {
  for (const deadline = Date.now() + 60000; !(await condition()); ) {
    check(Date.now() < deadline, `not within 60 s: ${what}`)
    await new Promise(done => setTimeout(done, 100))
  }
}

async function run(name, body) {
  try {
    await body()
    console.log(`ok ${name}`)
  } catch (error) {
    failed = true
    console.log(`FAILED ${name}: ${String(error.stack || error).replace(/\n/g, ' ')}`)
  }
}

const leaders = async (admin, name) =>
  (await admin.fetchTopicMetadata({ topics: [name] })).topics[0].partitions.map(each => each.leader).filter(leader => leader >= 0)

async function create(admin, name, partitions, configEntries = []) {
  check(await admin.createTopics({ topics: [{ topic: name, numPartitions: partitions, replicationFactor: 1, configEntries }] }), 'the topic was there already')
  await until('the topic has leaders', async () => (await leaders(admin, name)).length === partitions)
}

async function produce(admin) {
  await create(admin, topic, PARTITIONS)
  const producer = kafka.producer({ idempotent: true, createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  for (let from = 0; from < records; from += 1000) {
    const messages = Array.from({ length: Math.min(1000, records - from) }, (_, index) => expected(from + index))
    const answers = await producer.send({ topic, messages, compression: codecs[codec], acks: -1 })
    check(answers.every(each => each.errorCode === 0), JSON.stringify(answers))
  }
  await producer.disconnect()
  const offsets = await admin.fetchTopicOffsets(topic)
  const total = offsets.reduce((sum, each) => sum + Number(each.high) - Number(each.low), 0)
  check(total === records, `the partitions hold ${total} records`)
}

async function configOf(admin, name, key) {
  const answer = await admin.describeConfigs({ includeSynonyms: false, resources: [{ type: ConfigResourceTypes.TOPIC, name, configNames: [key] }] })
  return answer.resources[0].configEntries[0].configValue
}

async function lifeOfATopic(admin) {
  const name = `kafkajs-life-${Date.now()}`
  await create(admin, name, PARTITIONS, [{ name: 'retention.ms', value: '3600000' }])
  const cluster = await admin.describeCluster()
  const spread = new Set(await leaders(admin, name)).size
  check(spread === Math.min(cluster.brokers.length, PARTITIONS), `${PARTITIONS} partitions are on ${spread} of ${cluster.brokers.length} nodes`)
  check((await configOf(admin, name, 'retention.ms')) === '3600000', 'retention.ms as created')
  await admin.alterConfigs({ validateOnly: false, resources: [{ type: ConfigResourceTypes.TOPIC, name, configEntries: [{ name: 'max.message.bytes', value: '65536' }] }] })
  await until('the new config shows', async () => (await configOf(admin, name, 'max.message.bytes')) === '65536')
  await admin.createPartitions({ topicPartitions: [{ topic: name, count: PARTITIONS + 3 }] })
  await until('the new partitions have leaders', async () => (await leaders(admin, name)).length === PARTITIONS + 3)
  check((await admin.createTopics({ topics: [{ topic: name, numPartitions: 1 }] })) === false, 'the topic was created twice')
  await admin.deleteTopics({ topics: [name] })
  await until('the topic is gone', async () => !(await admin.listTopics()).includes(name))
}

async function deleteRecords(admin) {
  const name = `kafkajs-cut-${Date.now()}`
  await create(admin, name, 1)
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  await producer.send({ topic: name, messages: Array.from({ length: 100 }, (_, index) => ({ value: String(index) })) })
  await producer.disconnect()
  await admin.deleteTopicRecords({ topic: name, partitions: [{ partition: 0, offset: '40' }] })
  const [offsets] = await admin.fetchTopicOffsets(name)
  check(offsets.low === '40' && offsets.high === '100', `the log is ${offsets.low}..${offsets.high}`)
  await admin.deleteTopics({ topics: [name] })
}

async function main() {
  const admin = kafka.admin()
  await admin.connect()
  if (mode === 'produce') await run(`${codec}: written`, () => produce(admin))
  if (mode === 'delete') await admin.deleteTopics({ topics: [topic] })
  if (mode === 'admin') {
    await run('the life of a topic', () => lifeOfATopic(admin))
    await run('records are deleted', () => deleteRecords(admin))
  }
  await admin.disconnect()
  process.exit(failed ? 1 : 0)
}

main().catch(error => {
  console.log(`FAILED ${mode}: ${error.stack}`)
  process.exit(1)
})
