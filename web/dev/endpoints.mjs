// How people reach the stand-in's workloads: what each app declares, the verb that opens it, and the page it shows.

const declared = {
  'batch-queue': [
    ['dashboard', 'Dashboard', 'controller', 'http', 'scheduler.queue.read'],
    ['metrics', 'Metrics', 'controller', 'tcp', 'scheduler.queue.read'],
    ['login', 'Login to a worker', 'worker', 'ssh', 'scheduler.node.login'], // which the person lacks
  ],
  notebook: [['notebook', 'Notebook', 'server', 'http', 'apps.queue.submit']],
};

/** The endpoints of a workload. */
export function endpointsOf(instance, port) {
  return (declared[instance.appSlug] ?? []).map(([name, title, componentKey, protocol, permissionKey]) => ({
    name,
    title,
    componentKey,
    protocol,
    permissionKey,
    address: protocol === 'http' ? `http://${name}--${instance.id.split('_')[1]}.apps.localhost:${port}` : '',
    serving: instance.rows.filter((each) => each.componentKey === componentKey && each.health === 'HEALTHY').length,
  }));
}

/** The verb; a workload whose name begins with "refuse" is not opened. */
export function endpointMutations(world, find) {
  return {
    openEndpoint: async ({ input: { instanceId, endpoint } }) => {
      const instance = await find(world.instances, instanceId, 'instance');
      const found = instance.endpoints().find((each) => each.name === endpoint);
      if (instance.name.startsWith('refuse'))
        throw world.fault('NODE_UNREACHABLE', "the node's agent is not connected; try again in a moment");
      world.audit(found.permissionKey, 'openEndpoint', instanceId);
      return {
        url: `${found.address}/.platform/open?ticket=dev`,
        expiresAt: new Date(Date.now() + 30_000).toISOString(),
      };
    },
  };
}

/** Whether a host is an endpoint's. */
export const isEndpoint = (host = '') => /^[a-z0-9-]+--[0-9a-z]+\.apps\.localhost(:\d+)?$/.test(host);

/** What an endpoint shows. */
export const endpointPage =
  '<!doctype html><html lang="en"><meta charset="utf-8"><title>An app</title><h1>The app itself</h1>';
