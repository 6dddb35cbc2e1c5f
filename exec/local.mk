# The executor. Kernels are compiled once per instruction set and chosen at run time; their
# flags let the compiler contract and vectorise, which changes bits between instruction sets
# but never between layouts. The rest is compiled like everything else.
noinst_LIBRARIES += %reldir%/libexec.a %reldir%/libkernels_base.a
%canon_reldir%_libexec_a_CPPFLAGS = $(AM_CPPFLAGS) $(OPENBLAS_CFLAGS) $(MPI_CFLAGS) $(KERNEL_CPPFLAGS)
%canon_reldir%_libexec_a_SOURCES =
%canon_reldir%_libexec_a_SOURCES += %reldir%/arena.c %reldir%/arena.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/attention.c %reldir%/attention.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/blas.c %reldir%/blas.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/comm.c %reldir%/comm.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/comm_local.c %reldir%/comm_local.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/comm_mpi.c %reldir%/comm_mpi.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/comm_tcp.c %reldir%/comm_tcp.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/comm_wire.c %reldir%/comm_wire.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/identity.c %reldir%/identity.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/place.c %reldir%/place.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/tcp_link.c %reldir%/tcp_link.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/wire.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/data.c %reldir%/data.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/doctor.c %reldir%/doctor.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/findings.c
%canon_reldir%_libexec_a_SOURCES += %reldir%/host.c
%canon_reldir%_libexec_a_SOURCES += %reldir%/dump.c %reldir%/dump.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/ends.c %reldir%/ends.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/evaluate.c %reldir%/evaluate.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/held.c
%canon_reldir%_libexec_a_SOURCES += %reldir%/interpret.c
%canon_reldir%_libexec_a_SOURCES += %reldir%/kernels_all.c %reldir%/kernels.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/launch.c %reldir%/launch.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/layer.c %reldir%/layer.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/metrics.c %reldir%/metrics.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/optimizer.c %reldir%/optimizer.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/options.c %reldir%/options.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/passes.c
%canon_reldir%_libexec_a_SOURCES += %reldir%/rank.c %reldir%/rank.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/rng.c %reldir%/rng.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/shared.c %reldir%/shared.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/stage.c %reldir%/stage.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/summary.c %reldir%/summary.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/timeline.c %reldir%/timeline.h
%canon_reldir%_libexec_a_SOURCES += %reldir%/unit.c %reldir%/unit.h

kernel_sources = %reldir%/kernels.c %reldir%/kernels.h %reldir%/vec.h
kernel_libs = %reldir%/libkernels_base.a
%canon_reldir%_libkernels_base_a_SOURCES = $(kernel_sources)
%canon_reldir%_libkernels_base_a_CPPFLAGS = $(AM_CPPFLAGS) -DEXEC_KERNELS=exec_kernels_base \
	-DEXEC_ISA='"base"' -DEXEC_SUPPORTED=true
%canon_reldir%_libkernels_base_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS)
if KERNELS_X86
noinst_LIBRARIES += %reldir%/libkernels_avx2.a %reldir%/libkernels_avx512.a
kernel_libs += %reldir%/libkernels_avx2.a %reldir%/libkernels_avx512.a
%canon_reldir%_libkernels_avx2_a_SOURCES = $(kernel_sources)
%canon_reldir%_libkernels_avx2_a_CPPFLAGS = $(AM_CPPFLAGS) -DEXEC_KERNELS=exec_kernels_avx2 \
	-DEXEC_ISA='"avx2"' \
	-DEXEC_SUPPORTED='(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))'
%canon_reldir%_libkernels_avx2_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) -mavx2 -mfma
%canon_reldir%_libkernels_avx512_a_SOURCES = $(kernel_sources)
%canon_reldir%_libkernels_avx512_a_CPPFLAGS = $(AM_CPPFLAGS) \
	-DEXEC_KERNELS=exec_kernels_avx512 -DEXEC_ISA='"avx512"' \
	-DEXEC_SUPPORTED='(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))'
%canon_reldir%_libkernels_avx512_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) -mavx512f -mavx512dq \
	-mfma -mprefer-vector-width=512
endif

exec_libs = %reldir%/libexec.a $(kernel_libs) libpt/libpt.a $(pt_libs) $(OPENBLAS_LIBS) $(MPI_LIBS)
bin_PROGRAMS += ptexec
ptexec_SOURCES = %reldir%/main.c
ptexec_LDADD = $(exec_libs)
