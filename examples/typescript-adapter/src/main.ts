// The controller of counter.
import { counter, manifest } from "./counter.js";
import { main } from "./kit/index.js";

await main({ name: "counter", build: "1.0.0", manifest, make: counter });
