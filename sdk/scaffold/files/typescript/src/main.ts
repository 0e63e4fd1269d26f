// The controller of __NAME__.
import { app, manifest } from "./app.js";
import { main } from "./kit/index.js";

await main({ name: "__NAME__", build: "0.1.0", manifest, make: app });
