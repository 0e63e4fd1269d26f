// The controller of counter.
import { counter } from "./counter/app.js";
import { main } from "./kit/main.js";

main({ name: "counter", build: "1.0.0", make: counter });
