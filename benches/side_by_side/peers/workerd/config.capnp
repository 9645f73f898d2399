# A dynamic worker per call, loaded by another worker. `ca.pem` is put beside this file by the bench.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "vendor", network = (
      allow = ["public", "private", "local"],
      tlsOptions = (trustBrowserCas = false, trustedCertificates = [embed "ca.pem"]),
    )),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);

const main :Workerd.Worker = (
  modules = [(name = "main.js", esModule = embed "main.js")],
  compatibilityDate = "2026-11-01",
  bindings = [
    (name = "LOADER", workerLoader = ()),
    (name = "VENDOR_URL", fromEnvironment = "VENDOR_URL"),
    (name = "VENDOR_TOKEN", fromEnvironment = "VENDOR_TOKEN"),
  ],
  globalOutbound = "vendor",
);
