# Finds the CUDA compiler that pip installed (cuda-toolkit[nvcc,cudart,cccl]) so that a machine with no CUDA toolkit can
# build the GPU kernels. Include before enable_language(CUDA).
#
# Order: an explicit CMAKE_CUDA_COMPILER or CUDACXX, then the pip packages of the running Python, then PATH (CMake's own
# search). The wheels need two repairs: nvcc.profile names lib64 but the wheel ships lib, and there is no unversioned
# libcudart.so, which FindCUDAToolkit wants although we link the static runtime.
if(CMAKE_CUDA_COMPILER OR NOT "$ENV{CUDACXX}" STREQUAL "")
  return()
endif()
execute_process(
  COMMAND "${Python_EXECUTABLE}" -c "import nvidia.cu13 as m; print(list(m.__path__)[0])"
  OUTPUT_VARIABLE _fl_cuda_root OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE _fl_result)
if(NOT _fl_result EQUAL 0 OR NOT EXISTS "${_fl_cuda_root}/bin/nvcc")
  return()
endif()
message(STATUS "fastlinalg: using the CUDA compiler of the Python packages in ${_fl_cuda_root}")
set(CMAKE_CUDA_COMPILER "${_fl_cuda_root}/bin/nvcc")
set(CUDAToolkit_ROOT "${_fl_cuda_root}")
if(NOT DEFINED CMAKE_CUDA_FLAGS)
  set(CMAKE_CUDA_FLAGS "$ENV{CUDAFLAGS}") # CMake asks for it only where nothing is set
endif()
string(APPEND CMAKE_CUDA_FLAGS " -L${_fl_cuda_root}/lib")
file(GLOB _fl_cudart "${_fl_cuda_root}/lib/libcudart.so*")
set(CUDA_CUDART "${_fl_cudart}" CACHE FILEPATH "" FORCE)
