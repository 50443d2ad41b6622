# SPDX-License-Identifier: Apache-2.0
"""The job on a Ray cluster of a head and two workers, one of which is killed in the middle of a task."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import unittest
from pathlib import Path

from ray.cluster_utils import Cluster

from support import INDEX, SECRET, FleetCase, occurrences, sha256, tokens_of

STUCK_INDEX = Path(__file__).resolve().parent / "stuck_index.sh"
MEMORY = 80 << 20  # bytes of each node's object store


def parent_of(process: int) -> int:
    """Returns the id of the parent of a process."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


class OnACluster(FleetCase):
    def setUp(self) -> None:
        super().setUp()
        self.marks = self.root / "marks"
        self.marks.mkdir()
        # The workers of the cluster inherit the variables of their node.
        os.environ["FLEET_MARKS"] = str(self.marks)
        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": MEMORY}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.addCleanup(self.cluster.shutdown)
        self.workers = [self.cluster.add_node(num_cpus=1, object_store_memory=MEMORY) for _ in range(2)]
        self.cluster.wait_for_nodes()

    def start(self, *options: str) -> subprocess.Popen:
        arguments = self.arguments("--address", self.cluster.address, *options)
        job = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(job.kill)
        return job

    def wait_for(self, path: Path, job: subprocess.Popen) -> str:
        limit = time.monotonic() + 120
        while not path.exists():
            self.assertIsNone(job.poll(), job.stderr.read() if job.stderr and job.poll() is not None else "")
            self.assertLess(time.monotonic(), limit, f"no {path.name}")
            time.sleep(0.05)
        return path.read_text()

    def kill_worker_of(self, process: int) -> None:
        """Kills the node that runs a worker process, without a farewell."""
        nodes = {node.all_processes["raylet"][0].process.pid: node for node in self.workers}
        node = nodes[parent_of(process)]
        self.workers.remove(node)
        self.cluster.remove_node(node, allow_graceful=False)

    def test_a_worker_dies_in_the_middle(self) -> None:
        self.serve_all()
        job = self.start("--shards", "4", "--width", "2", "--tool", str(STUCK_INDEX))
        self.kill_worker_of(int(self.wait_for(self.marks / "stuck", job)))
        output, errors = job.communicate(timeout=180)
        self.assertEqual(job.returncode, 0, errors)
        self.assertIn("raylet", errors)  # Ray's note about the machine that died
        report = json.loads(output)
        self.assertEqual((report["generation"], report["snapshots"], report["tenants_not_allowed"]), (1, 4, 1))
        builds = [call for call in (self.marks / "calls").read_text().splitlines() if call.startswith("build")]
        self.assertEqual(len(builds), report["shards"] + 1, "one build ran twice")
        self.assertEqual(list(self.work.iterdir()), [], "the job leaves nothing, not even the half file")

        single = self.single_build("north", "south")
        self.assertEqual(sha256(self.current()), sha256(single))
        self.assertEqual(self.current().read_bytes(), single.read_bytes())
        self.assertGreater(occurrences(self.current(), "Lisbon"), 0)
        self.assertEqual(occurrences(self.current(), SECRET), 0)
        self.assertEqual(set(SECRET) & set(map(chr, tokens_of(self.current()))), set())

        # On the node that is left, a worker process dies, and there are no retries.
        for mark in (self.marks / "stuck", self.marks / "first"):
            mark.unlink() if mark.is_file() else mark.rmdir()
        job = self.start("--shards", "4", "--tool", str(STUCK_INDEX), "--retries", "0")
        os.kill(int(self.wait_for(self.marks / "stuck", job)), signal.SIGKILL)
        _, errors = job.communicate(timeout=180)
        self.assertEqual(job.returncode, 1, errors)
        self.assertRegex(errors, r"(?m)^fleet.py: the cluster lost a task and all its 0 retries: ")
        self.assertNotIn("Traceback", errors)
        self.assertEqual(list(self.work.iterdir()), [])

        # A damaged snapshot stops the next job with the sentence of the tool.
        damaged = self.snapshots / "south" / "b.snapshot"
        damaged.write_bytes(damaged.read_bytes()[:-1])
        job = self.start("--shards", "4", "--tool", INDEX)
        _, errors = job.communicate(timeout=180)
        self.assertEqual(job.returncode, 2, errors)
        self.assertRegex(errors, r"(?m)^fleet.py: reprise-index build on .*: south/b.snapshot: ")
        self.assertNotIn("Traceback", errors)
        self.assertEqual(self.generations(), ["generation-000001.corpus"])


if __name__ == "__main__":
    unittest.main()
