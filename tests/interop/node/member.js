// kafkajs as a member of a group: BOOTSTRAP GROUP TOPIC NAME STRATEGY SESSION_MS POLL_MS; what it says is told in groups.py.
'use strict'
const readline = require('readline')
const { Kafka, logLevel } = require('kafkajs')

const [bootstrap, groupId, topic, name, strategy, session, poll] = process.argv.slice(2)
if (strategy !== 'roundrobin') throw new Error(`no strategy ${strategy}`)
const kafka = new Kafka({ brokers: [bootstrap], clientId: name, logLevel: logLevel.ERROR, retry: { initialRetryTime: 100, retries: 20 } })
const consumer = kafka.consumer({
  groupId, sessionTimeout: Number(session), rebalanceTimeout: Number(poll), heartbeatInterval: Number(session) / 6, maxWaitTimeInMs: 200,
})
let wake = null
let awake = Promise.resolve()

const say = (event, ...rest) => process.stdout.write([event, Date.now(), ...rest].join(' ') + '\n')

async function stop() {
  say('revoked', '-')
  await consumer.disconnect()
  say('left')
  process.exit(0)
}

function obey(command) {
  if (command === 'stop') stop()
  if (command === 'stall') awake = new Promise(resolve => { wake = resolve })
  if (command === 'wake') wake()
}

async function main() {
  readline.createInterface({ input: process.stdin }).on('line', obey).on('close', stop)
  consumer.on(consumer.events.REBALANCING, () => say('revoked', '-'))
  consumer.on(consumer.events.GROUP_JOIN, event => {
    say('revoked', '-')
    say('assigned', '-', (event.payload.memberAssignment[topic] || []).join(','))
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ partition, message }) => {
      if (wake) {
        say('stalled')
        await awake
        wake = null
        say('woken')
      }
      say('got', partition, message.offset, message.value.toString())
    },
  })
}

main().catch(error => {
  console.log(error.stack)
  process.exit(1)
})
