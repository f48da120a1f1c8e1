// SPDX-License-Identifier: Apache-2.0
// The heat equation on a rod that ranks divide between them: what the tracer is tested on. Usage: heat
// SIZE; a rank has 2^SIZE cells, of which neighbours exchange a 64th.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

// In a function of its own, whose name the tracer is to find.
__attribute__((noinline)) double Residual(double own) {
  double sum = 0;
  MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0, cells = 1 << (argc > 1 ? atoi(argv[1]) : 6), steps = 20;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm rod;
  MPI_Comm_dup(MPI_COMM_WORLD, &rod);
  MPI_Bcast(&steps, 1, MPI_INT, 0, rod);
  const int left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int right = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
  const int edge = cells / 64;
  double* now = calloc((size_t)cells + 2 * (size_t)edge, sizeof(double));
  double* next = calloc((size_t)cells + 2 * (size_t)edge, sizeof(double));
  if (rank == 0) now[edge] = 1;
  // A child that exits must not write what the tracer has not yet written.
  const pid_t child = fork();
  if (child == 0) exit(0);
  waitpid(child, NULL, 0);
  double residual = 1;
  for (int step = 0; step < steps && residual > 0; ++step) {
    MPI_Sendrecv(now + edge, edge, MPI_DOUBLE, left, 1, now + cells + edge, edge, MPI_DOUBLE, right,
                 1, rod, MPI_STATUS_IGNORE);
    MPI_Sendrecv(now + cells, edge, MPI_DOUBLE, right, 2, now, edge, MPI_DOUBLE, left, 2, rod,
                 MPI_STATUS_IGNORE);
    double change = 0;
    for (int i = edge; i < cells + edge; ++i) {
      next[i] = now[i] + 0.25 * (now[i - edge] - 2 * now[i] + now[i + edge]);
      change += (next[i] - now[i]) * (next[i] - now[i]);
    }
    double* swapped = now;
    now = next;
    next = swapped;
    residual = Residual(change);
  }
  // Rank r gets r + 1 numbers of everybody.
  int* counts = calloc(4 * (size_t)ranks, sizeof(int));
  for (int i = 0; i < ranks; ++i) {
    counts[i] = i + 1;
    counts[2 * ranks + i] = rank + 1;
    if (i == 0) continue;
    counts[ranks + i] = counts[ranks + i - 1] + counts[i - 1];
    counts[3 * ranks + i] = counts[3 * ranks + i - 1] + rank + 1;
  }
  int* sent = calloc((size_t)ranks * ((size_t)ranks + 1), sizeof(int));
  int* got = calloc((size_t)ranks * ((size_t)ranks + 1), sizeof(int));
  MPI_Alltoallv(sent, counts, counts + ranks, MPI_INT, got, counts + 2 * ranks, counts + 3 * ranks,
                MPI_INT, rod);
  MPI_Barrier(rod);
  MPI_Comm_free(&rod);
  if (rank == 0) printf("residual %g\n", residual);
  free(got);
  free(sent);
  free(counts);
  free(next);
  free(now);
  return MPI_Finalize();
}
