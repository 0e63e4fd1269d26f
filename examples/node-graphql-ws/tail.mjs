// Tail a live feed of the platform from Node, with the stock graphql-ws client: the protocol is the usual
// graphql-transport-ws, so any client of it will do.
//
//   GPUAAS_URL       the platform, such as https://gpu.example.com
//   GPUAAS_TOKEN     a session token or service-account key
//   GPUAAS_INSTANCE  the instance whose timeline to tail; left out, all of GPUAAS_PROJECT is tailed from now on
//   GPUAAS_PROJECT   the project's id, prj_…
//   GPUAAS_AFTER     resume right behind this event's cursor
//   GPUAAS_UNTIL     end after the first event of this type, such as apps.instance.running
//   GPUAAS_TIMEOUT   seconds after which to give up, 0 for never (default 0)
//
// Each event is a line of JSON on standard output. Ends with 0 when GPUAAS_UNTIL was seen, with 1 on an error that
// trying again cannot mend, with 2 when the environment is incomplete, with 7 when the time is over.
import { setTimeout as delay } from 'node:timers/promises'
import { createClient } from 'graphql-ws'
import WebSocket from 'ws'

const { GPUAAS_URL: url, GPUAAS_TOKEN: token, GPUAAS_INSTANCE: instance, GPUAAS_PROJECT: project, GPUAAS_UNTIL: until } = process.env
if (!url || !token || !(instance || project)) {
  console.error('tail: set GPUAAS_URL, GPUAAS_TOKEN and GPUAAS_INSTANCE or GPUAAS_PROJECT')
  process.exit(2)
}

const [root, id] = instance ? ['instanceTimeline(instanceId: $id', instance] : ['projectActivity(projectId: $id', project]
const query = `subscription Tail($id: ID!, $after: String) {
  ${root}, after: $after) { id cursor seq type appInstanceId message correlationId occurredAt }
}`

// The credential goes in connection_init, never in the address. Reconnecting is ours, as only we know the cursor.
const client = createClient({
  url: url.replace(/^http/, 'ws').replace(/\/$/, '') + '/graphql',
  webSocketImpl: WebSocket,
  connectionParams: { authorization: `Bearer ${token}` },
  retryAttempts: 0,
  keepAlive: 15_000,
  lazyCloseTimeout: 0,
})

let after = process.env.GPUAAS_AFTER || null
const seen = new Set()

// follow prints events until the connection ends; true means that there is no more to see.
async function follow() {
  for await (const { data, errors } of client.iterate({ query, variables: { id, after } })) {
    if (errors) throw errors
    const [event] = Object.values(data)
    after = event.cursor
    if (seen.has(event.id)) continue
    seen.add(event.id)
    if (seen.size > 1000) seen.delete(seen.values().next().value)
    console.log(JSON.stringify(event))
    if (event.type === until) return true
  }
  return true
}

// lasting says whether an error will be the same next time: a refusal that is not retryable, or a close code that
// the protocol uses for what the client did wrong.
function lasting(error) {
  if (Array.isArray(error)) return !error[0]?.extensions?.retryable
  // A mistake of this program's own will not mend itself either.
  if (error instanceof TypeError) return true
  return [4400, 4401, 4403, 4406, 4409, 4429].includes(error?.code)
}

const seconds = Number(process.env.GPUAAS_TIMEOUT || 0)
if (seconds > 0) {
  setTimeout(() => {
    console.error(`tail: not seen after ${seconds} s`)
    process.exit(7)
  }, seconds * 1000).unref()
}

for (let failures = 0, last = after; ; ) {
  try {
    if (await follow()) break
  } catch (error) {
    const text = Array.isArray(error) ? JSON.stringify(error) : `${error?.code ?? ''} ${error?.reason || error?.message || error}`
    if (lasting(error)) {
      console.error(`tail: ${text}`)
      process.exit(1)
    }
    failures = after === last ? failures + 1 : 1
    last = after
    const wait = Math.min(200 * 2 ** failures, 15_000) * (0.5 + Math.random() / 2)
    console.error(`tail: ${text}: trying again in ${Math.round(wait)} ms`)
    await delay(wait)
  }
}
await client.dispose()
process.exit(0)
