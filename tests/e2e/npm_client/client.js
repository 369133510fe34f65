// Writes and reads streams of an embedded node with a client library of others: geteventstore-promise,
// from the npm registry, over HTTP. Says what was wrong and exits with 1, or prints "all good".
'use strict';
const assert = require('assert');
const { HTTPClient, EventFactory } = require('geteventstore-promise');

const node = new URL(process.env.NODE_URL);
const client_as = (username, password) => new HTTPClient({
  protocol: node.protocol.replace(':', ''),
  hostname: node.hostname,
  port: Number(node.port),
  credentials: { username, password },
  timeout: 20000,
});
const status_of = (error) => (error.response ? error.response.status : error.message);
const refused = async (call) => call.then(() => 'done', status_of);

async function main() {
  const client = client_as('admin', 'changeit');
  const events = new EventFactory();
  await client.ping();

  // Append: a new stream, several events at once, with metadata and ids of our own.
  const stream = 'orders-npm';
  assert.strictEqual(await client.checkStreamExists(stream), false);
  const first = [0, 1, 2].map((n) =>
    events.newEvent('ordered', { order: n, note: 'grüße ✓' }, { by: 'npm' }));
  await client.writeEvents(stream, first, { expectedVersion: -1 });
  assert.strictEqual(await client.checkStreamExists(stream), true);

  // The same events again are the same write; others at that version are refused.
  await client.writeEvents(stream, first, { expectedVersion: -1 });
  const other = [events.newEvent('ordered', { order: 99 })];
  assert.strictEqual(
    await refused(client.writeEvents(stream, other, { expectedVersion: -1 })), 400);
  await client.writeEvent(stream, 'shipped', { order: 2 }, { by: 'npm' }, { expectedVersion: 2 });
  for (let n = 4; n < 24; n += 1) {
    await client.writeEvent(stream, 'ordered', { order: n });
  }

  // Read: forwards, backwards, in pages, from the middle.
  const forward = await client.readEventsForward(stream, 0, 4);
  assert.deepStrictEqual(forward.events.map((e) => e.eventNumber), [0, 1, 2, 3]);
  assert.deepStrictEqual(forward.events.map((e) => e.eventType),
    ['ordered', 'ordered', 'ordered', 'shipped']);
  assert.deepStrictEqual(forward.events[1].data, { order: 1, note: 'grüße ✓' });
  assert.deepStrictEqual(JSON.parse(forward.events[1].metaData), { by: 'npm' });
  assert.strictEqual(forward.events[1].eventId, first[1].eventId);
  assert.strictEqual(forward.isEndOfStream, false);
  assert.strictEqual(forward.nextEventNumber, 4);
  const middle = await client.getEvents(stream, 10, 3);
  assert.deepStrictEqual(middle.map((e) => e.data.order), [10, 11, 12]);
  const newest = await client.getEvents(stream, 'head', 2, 'backward');
  assert.deepStrictEqual(newest.map((e) => e.eventNumber), [23, 22]);
  const all = await client.getAllStreamEvents(stream, 5);
  assert.deepStrictEqual(all.map((e) => e.eventNumber), [...Array(24).keys()]);
  const shipped = await client.getEventsByType(stream, ['shipped']);
  assert.deepStrictEqual(shipped.map((e) => e.eventNumber), [3]);

  // Delete: a soft one lets the stream begin again where it ended, a hard one does not.
  await client.writeEvent('passing-npm', 'seen', { n: 0 });
  await client.writeEvent('passing-npm', 'seen', { n: 1 });
  await client.deleteStream('passing-npm');
  assert.strictEqual(await client.checkStreamExists('passing-npm'), false);
  await client.writeEvent('passing-npm', 'seen', { n: 2 });
  const reborn = await client.getAllStreamEvents('passing-npm');
  assert.deepStrictEqual(reborn.map((e) => [e.eventNumber, e.data.n]), [[2, 2]]);
  await client.deleteStream('passing-npm', true);
  assert.strictEqual(await refused(client.getEvents('passing-npm')), 410);
  assert.strictEqual(await refused(client.writeEvent('passing-npm', 'seen', { n: 3 })), 410);

  // Who may: a wrong password is refused.
  assert.strictEqual(await refused(client_as('admin', 'wrong').getEvents(stream)), 401);

  // Administration, as far as this library has it.
  const scavenge = await client.admin.scavenge();
  assert.ok(scavenge.scavengeId || scavenge.ScavengeId, JSON.stringify(scavenge));
  console.log('all good');
}

main().catch((error) => {
  console.error(error.stack, error.response ? JSON.stringify(error.response.data) : '');
  process.exit(1);
});
