// Appends to and follows a cluster with the vendor's own gRPC client while its leader is killed.
// Prints "ready" once it works, appends until the file KILLED is there and a hundred more, then
// prints "all good" when nothing that was acknowledged is lost or double, or what was wrong.
'use strict';
const assert = require('assert');
const fs = require('fs');
const { randomUUID } = require('crypto');
const db = require('@eventstore/db-client');

const connect = (preference) => db.EventStoreDBClient.connectionString(
  `${process.env.CLUSTER}&nodePreference=${preference}`);
const writer = connect('leader');
const stream = 'grpc-failover';
const acknowledged = [];
const received = [];
const consumed = new Set();
const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
let failures = 0;
let reconnects = 0;

/// The same event until it is acknowledged: a repeated one is written once.
async function append(n) {
  const event = db.jsonEvent({ id: randomUUID(), type: 'written', data: { n } });
  for (;;) {
    try {
      await writer.appendToStream(stream, event);
      acknowledged.push(event.id);
      return;
    } catch (error) {
      failures += 1;
      if (process.env.VERBOSE) console.error(n, error.type, error.message);
      await pause(50);
    }
  }
}

/// Follows the stream; after an error from behind what was received, on any node.
async function follow(client) {
  for (;;) {
    const last = received.length ? received[received.length - 1].event.revision : db.START;
    try {
      for await (const each of client.subscribeToStream(stream, { fromRevision: last })) {
        received.push(each);
      }
    } catch (error) {
      reconnects += 1;
      if (process.env.VERBOSE) console.error('subscription', error.type, error.message);
      await pause(50);
    }
  }
}

/// A consumer of a group: what was acknowledged may come again, and nothing may be missing.
async function consume(client) {
  for (;;) {
    try {
      const group = client.subscribeToPersistentSubscriptionToStream(stream, 'failover');
      for await (const each of group) {
        consumed.add(each.event.id);
        await group.ack(each);
      }
    } catch (error) {
      if (process.env.VERBOSE) console.error('group', error.type, error.message);
    }
    await pause(50);
  }
}

async function main() {
  await append(0);
  await writer.createPersistentSubscriptionToStream(stream, 'failover',
    db.persistentSubscriptionToStreamSettingsFromDefaults({
      startFrom: db.START, checkPointAfter: 100, checkPointLowerBound: 1, maxRetryCount: 100 }));
  follow(connect('leader'));
  consume(connect('leader'));
  for (let n = 1; n < 50; n += 1) await append(n);
  console.log('ready');
  while (!fs.existsSync(process.env.KILLED)) await append(acknowledged.length);
  for (let n = 0; n < 100; n += 1) await append(acknowledged.length);

  const read = [];
  for await (const each of writer.readStream(stream)) read.push(each.event.id);
  assert.deepStrictEqual(read, acknowledged);
  const until = Date.now() + 20000;
  const missing = () => acknowledged.filter((id) => !consumed.has(id)).length;
  while ((received.length < acknowledged.length || missing()) && Date.now() < until) {
    await pause(20);
  }
  assert.strictEqual(missing(), 0, 'events that the group did not deliver');
  assert.deepStrictEqual(received.map((each) => each.event.id), acknowledged);
  assert.deepStrictEqual(
    received.map((each) => Number(each.event.revision)), [...acknowledged.keys()]);
  console.log(`all good: ${acknowledged.length} events, ${failures} failed calls, `
    + `${reconnects} new subscriptions`);
}

main().then(() => process.exit(0), (error) => {
  console.error(error.stack, error.type);
  process.exit(1);
});
