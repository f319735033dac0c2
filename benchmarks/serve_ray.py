"""
The service under Ray Serve on two nodes of a local cluster, one of which is killed under load:

    OMP_NUM_THREADS=1 python benchmarks/serve_ray.py --minutes 2 --models ner snli squad

The clients of `benchmarks/serve.py` repeat requests that were not answered. Prints its lines of
JSON.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import ray
from ray import serve
from ray.cluster_utils import Cluster

from elmo_tasks.web.serve import make_app

BENCHMARKS = Path(__file__).resolve().parent
PORT = 8766


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--models", nargs="+", default=["ner", "snli", "squad"])
    arguments = parser.parse_args()
    os.environ["ELMO_TASKS_SERVE"] = " ".join(arguments.models)
    memory = 200 * 10**6
    cluster = Cluster(
        True,
        head_node_args={"num_cpus": 1, "object_store_memory": memory, "include_dashboard": False},
    )
    second = cluster.add_node(num_cpus=1, object_store_memory=memory)
    ray.init(address=cluster.address, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": PORT, "location": "HeadOnly"})
    deployment = serve.deployment(serve.ingress(make_app)())
    application = deployment.options(
        num_replicas=2, ray_actor_options={"num_cpus": 1}, max_ongoing_requests=8
    )
    serve.run(application.bind())
    print(serve.status().applications, file=sys.stderr)
    command = [sys.executable, str(BENCHMARKS / "serve.py"), "--port", str(PORT), "--retries", "20"]
    command += ["--minutes", str(arguments.minutes), "--models", *arguments.models]
    load = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert load.stdout is not None
    print(load.stdout.readline(), end="", flush=True)
    time.sleep(30 * arguments.minutes)
    cluster.remove_node(second, allow_graceful=False)
    print(load.stdout.read(), end="")
    print(serve.status().applications, [node["Alive"] for node in ray.nodes()], file=sys.stderr)
    serve.shutdown()
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
