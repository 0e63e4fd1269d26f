// The controller of __NAME__.
import { app } from "./app.js";
import { main } from "./kit/main.js";

main({ name: "__NAME__", build: "0.1.0", make: app });
