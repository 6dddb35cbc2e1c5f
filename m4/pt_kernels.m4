# PT_KERNELS: flags for the executor's kernels. KERNEL_CFLAGS vectorise and contract; on x86-64
# a copy each is built for AVX2 and AVX-512, chosen at run time.
AC_DEFUN([PT_KERNELS],
[KERNEL_CFLAGS=
m4_foreach_w([flag], [-O3 -fno-math-errno -fno-trapping-math -ffp-contract=fast -Wno-psabi],
  [PT_APPEND_CFLAG([KERNEL_CFLAGS], flag)])
pt_save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS -mavx512f -mavx512dq -mfma -mavx2 -mprefer-vector-width=512"
AC_CACHE_CHECK([whether kernels for AVX2 and AVX-512 can be built], [pt_cv_kernels_x86],
  [AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#ifndef __x86_64__
#error not x86-64
#endif]], [[return __builtin_cpu_supports("avx512f");]])],
    [pt_cv_kernels_x86=yes], [pt_cv_kernels_x86=no])])
CFLAGS=$pt_save_CFLAGS
KERNEL_CPPFLAGS=
AS_IF([test "x$pt_cv_kernels_x86" = xyes], [KERNEL_CPPFLAGS=-DPT_KERNELS_X86])
AC_SUBST([KERNEL_CFLAGS])
AC_SUBST([KERNEL_CPPFLAGS])
AM_CONDITIONAL([KERNELS_X86], [test "x$pt_cv_kernels_x86" = xyes])])
