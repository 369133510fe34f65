// The vendor's own gRPC client (@eventstore/db-client, from the npm registry) against an embedded
// node. Says what was wrong and exits with 1, or prints "all good".
'use strict';
const assert = require('assert');
const db = require('@eventstore/db-client');

const address = process.env.NODE_ADDRESS; // host:port
const suffix = process.env.NODE_SUFFIX; // ?tls=false, or ?tlsCAFile=...
const secure = process.env.NODE_SECURE === 'yes';
const client = db.EventStoreDBClient.connectionString(
  `esdb://${secure ? 'admin:changeit@' : ''}${address}${suffix}`);

const event = (type, data, metadata) => db.jsonEvent({ type, data, metadata });
const collected = async (iterable) => {
  const out = [];
  for await (const each of iterable) out.push(each);
  return out;
};
const failure = (promise) => promise.then(() => 'done', (error) => error.type || error.message);

/// The events of a subscription, with a wait for the next one.
class Follower {
  constructor(subscription) {
    this.subscription = subscription;
    this.events = [];
    this.caughtUp = 0;
    this.waiting = [];
    subscription.on('data', (each) => { this.events.push(each); this.wake(); });
    subscription.on('caughtUp', () => { this.caughtUp += 1; this.wake(); });
    subscription.on('error', (error) => { this.failed = error; this.wake(); });
  }

  wake() { this.waiting.splice(0).forEach((resolve) => resolve()); }

  async until(done) {
    while (!done() && !this.failed) {
      await new Promise((resolve) => { this.waiting.push(resolve); });
    }
    if (this.failed) throw this.failed;
  }
}

async function appendsAndReads() {
  const stream = 'grpc-orders';
  const first = [0, 1, 2].map((n) => event('ordered', { n, note: 'grüße ✓' }, { by: 'npm' }));
  const appended = await client.appendToStream(stream, first, { expectedRevision: db.NO_STREAM });
  assert.strictEqual(appended.nextExpectedRevision, 2n);
  // The same events again are the same write; others at that revision are refused.
  const again = await client.appendToStream(stream, first, { expectedRevision: db.NO_STREAM });
  assert.strictEqual(again.nextExpectedRevision, 2n);
  assert.strictEqual(again.position.commit, appended.position.commit);
  assert.strictEqual(await failure(client.appendToStream(
    stream, event('ordered', {}), { expectedRevision: db.NO_STREAM })), 'wrong-expected-version');
  await client.appendToStream(stream, event('shipped', { n: 3 }), { expectedRevision: 2n });
  await client.appendToStream(
    stream, db.binaryEvent({ type: 'scan', data: Buffer.from([0, 255, 1]) }),
    { expectedRevision: db.STREAM_EXISTS });
  for (let n = 5; n < 100; n += 1) await client.appendToStream(stream, event('ordered', { n }));

  const forwards = await collected(client.readStream(stream, { maxCount: 4 }));
  assert.deepStrictEqual(forwards.map((e) => Number(e.event.revision)), [0, 1, 2, 3]);
  assert.deepStrictEqual(forwards[1].event.data, { n: 1, note: 'grüße ✓' });
  assert.deepStrictEqual(forwards[1].event.metadata, { by: 'npm' });
  assert.strictEqual(forwards[1].event.id, first[1].id);
  const middle = await collected(client.readStream(stream, { fromRevision: 10n, maxCount: 3 }));
  assert.deepStrictEqual(middle.map((e) => e.event.data.n), [10, 11, 12]);
  const newest = await collected(client.readStream(
    stream, { direction: db.BACKWARDS, fromRevision: db.END, maxCount: 2 }));
  assert.deepStrictEqual(newest.map((e) => Number(e.event.revision)), [99, 98]);
  const whole = await collected(client.readStream(stream));
  assert.strictEqual(whole.length, 100);
  assert.deepStrictEqual(Buffer.from(whole[4].event.data), Buffer.from([0, 255, 1]));
  assert.strictEqual(
    await failure(collected(client.readStream('grpc-missing'))), 'stream-not-found');

  const all = await collected(client.readAll({
    direction: db.BACKWARDS, fromPosition: db.END, maxCount: 5 }));
  assert.strictEqual(all.length, 5);
  const ours = (await collected(client.readAll({ maxCount: 10000 })))
    .filter((e) => e.event && e.event.streamId === stream);
  assert.strictEqual(ours.length, 100);
  const next = await collected(client.readAll({
    fromPosition: ours[10].event.position, maxCount: 1 }));
  assert.strictEqual(next[0].event.id, ours[10].event.id);
  return stream;
}

async function follows(stream) {
  const whole = new Follower(client.subscribeToStream(stream, { fromRevision: db.START }));
  const fresh = new Follower(client.subscribeToStream(stream, { fromRevision: db.END }));
  const all = new Follower(client.subscribeToAll({
    fromPosition: db.START, filter: db.excludeSystemEvents() }));
  await Promise.all([whole, fresh, all].map((each) => each.until(() => each.caughtUp > 0)));
  await whole.until(() => whole.events.length >= 100);
  await all.until(() => all.events.filter((e) => e.event.streamId === stream).length >= 100);
  assert.strictEqual(fresh.events.length, 0);
  assert.ok(all.events.every((e) => !e.event.type.startsWith('$')));
  // More than the server holds for a subscription.
  const many = [...Array(50).keys()].map((n) => event('many', { n }));
  await client.appendToStream(stream, many);
  await whole.until(() => whole.events.length >= 150);
  await fresh.until(() => fresh.events.length >= 50);
  await all.until(() => all.events.filter((e) => e.event.type === 'many').length >= 50);
  assert.deepStrictEqual(whole.events.map((e) => Number(e.event.revision)), [...Array(150).keys()]);
  assert.deepStrictEqual(fresh.events.map((e) => e.event.data.n), [...Array(50).keys()]);
  await Promise.all([whole, fresh, all].map((each) => each.subscription.unsubscribe()));
}

/// Consumers of a group: acknowledge, retry, park, replay; then the group is dropped under them.
async function competes() {
  const stream = 'grpc-work';
  const group = 'workers';
  await client.appendToStream(stream, [0, 1, 2, 3].map((n) => event('work', { n })));
  const settings = db.persistentSubscriptionToStreamSettingsFromDefaults({
    startFrom: db.START, maxRetryCount: 3 });
  await client.createPersistentSubscriptionToStream(stream, group, settings);
  assert.match(await failure(client.createPersistentSubscriptionToStream(stream, group, settings)),
    /exists/);
  const worker = new Follower(client.subscribeToPersistentSubscriptionToStream(stream, group));
  const { events, subscription } = worker;
  await worker.until(() => events.length === 4);
  assert.deepStrictEqual(events.map((e) => e.event.data.n), [0, 1, 2, 3]);
  await subscription.ack(events[0]);
  await subscription.nack(db.RETRY, 'later', events[1]);
  await subscription.nack(db.PARK, 'not this one', events[2]);
  await subscription.nack(db.SKIP, 'never mind', events[3]);
  await worker.until(() => events.length === 5);
  assert.deepStrictEqual([events[4].event.data.n, events[4].retryCount], [1, 1]);
  await subscription.ack(events[4]);
  const info = async () => client.getPersistentSubscriptionToStreamInfo(stream, group);
  let seen = await info();
  for (let i = 0; i < 200 && Number(seen.stats.parkedMessageCount) === 0; i += 1) {
    await new Promise((resolve) => { setTimeout(resolve, 20); });
    seen = await info();
  }
  assert.strictEqual(Number(seen.stats.parkedMessageCount), 1);
  assert.strictEqual(seen.connections.length, 1);
  assert.strictEqual(seen.status, 'Live');
  await client.replayParkedMessagesToStream(stream, group);
  await worker.until(() => events.length === 6);
  assert.strictEqual(events[5].event.data.n, 2);
  assert.match(events[5].link.streamId, /-parked$/);
  await subscription.ack(events[5]);
  await client.appendToStream(stream, event('work', { n: 4 }));
  await worker.until(() => events.length === 7);
  await subscription.ack(events[6]);

  // Of all events, by their types.
  await client.createPersistentSubscriptionToAll('everything',
    db.persistentSubscriptionToAllSettingsFromDefaults({ startFrom: db.START }),
    { filter: db.eventTypeFilter({ prefixes: ['work'] }) });
  const all = new Follower(client.subscribeToPersistentSubscriptionToAll('everything'));
  await all.until(() => all.events.length === 5);
  await all.subscription.ack(...all.events);
  const names = (await client.listAllPersistentSubscriptions()).map((e) => e.groupName);
  assert.deepStrictEqual(names.sort(), ['everything', group]);
  assert.strictEqual((await client.listPersistentSubscriptionsToStream(stream)).length, 1);
  await all.subscription.unsubscribe();
  await client.deletePersistentSubscriptionToAll('everything');

  await client.updatePersistentSubscriptionToStream(stream, group,
    db.persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: db.START, maxRetryCount: 1 }));
  await failure(worker.until(() => false));
  assert.match(worker.failed.type || worker.failed.message, /dropped/);
  await client.restartPersistentSubscriptionSubsystem();
  await client.deletePersistentSubscriptionToStream(stream, group);
  assert.match(await failure(info()), /does-not-exist/);
}

async function metadataAndDeletes() {
  const stream = 'grpc-passing';
  await client.appendToStream(stream, [0, 1, 2].map((n) => event('seen', { n })));
  await client.setStreamMetadata(stream, { maxCount: 2 });
  assert.strictEqual((await client.getStreamMetadata(stream)).metadata.maxCount, 2);
  const limited = await collected(client.readStream(stream));
  assert.deepStrictEqual(limited.map((e) => Number(e.event.revision)), [1, 2]);
  await client.deleteStream(stream);
  assert.strictEqual(await failure(collected(client.readStream(stream))), 'stream-not-found');
  await client.appendToStream(stream, event('seen', { n: 3 }));
  const reborn = await collected(client.readStream(stream));
  assert.deepStrictEqual(reborn.map((e) => Number(e.event.revision)), [3]);
  await client.tombstoneStream(stream);
  assert.strictEqual(await failure(collected(client.readStream(stream))), 'stream-deleted');
  assert.strictEqual(
    await failure(client.appendToStream(stream, event('seen', {}))), 'stream-deleted');
}

async function rights() {
  const credentials = { username: 'admin', password: 'changeit' };
  // With credentials of its own a call is Append, not a batch.
  await client.appendToStream('grpc-single', event('seen', {}), { credentials });
  assert.strictEqual(await failure(client.appendToStream(
    'grpc-single', event('seen', {}), { credentials, expectedRevision: 7n })),
  'wrong-expected-version');
  if (!secure) return;
  const wrong = { username: 'admin', password: 'wrong' };
  assert.match(await failure(collected(client.readStream('grpc-single', { credentials: wrong }))),
    /access-denied|unauthenticated|UNAUTHENTICATED/i);
  const ops = { username: 'ops', password: 'changeit' };
  assert.strictEqual(
    await failure(collected(client.readAll({ credentials: ops, maxCount: 1 }))), 'access-denied');
}

async function main() {
  const stream = await appendsAndReads();
  await follows(stream);
  await competes();
  await metadataAndDeletes();
  await rights();
  await client.dispose();
  console.log('all good');
}

main().then(() => process.exit(0), (error) => {
  console.error(error.stack, error.type);
  process.exit(1);
});
