import sys
import h5py, matplotlib.pyplot as plt, numpy as np
with h5py.File(sys.argv[1]) as file:
    cells, goal = file["cells"][:], file["workload"].attrs["goal_error"]
for sparsity in np.unique(cells["sparsity"]):
    line = np.sort(cells[(cells["sparsity"] == sparsity) & (cells["steps_to_result"] >= 0)], order="batch_size")
    plt.loglog(line["batch_size"], line["steps_to_result"], "o-", base=2, label=f"sparsity {sparsity:g}")
plt.xlabel("Batch size"), plt.ylabel(f"Steps to validation error ≤ {goal:g}"), plt.legend()
plt.savefig("steps-to-result.png")
