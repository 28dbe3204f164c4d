# Which GPUs to compile for. Hopper's own instructions exist under the name 90a alone: code for 90 has no fast kernels.

# The compute capabilities of this machine's GPUs as the driver's tool says them: "9.0;8.6". Empty where there is none.
function(fl_gpus_here result)
  set(found "")
  find_program(FL_NVIDIA_SMI nvidia-smi)
  mark_as_advanced(FL_NVIDIA_SMI)
  if(FL_NVIDIA_SMI)
    execute_process(COMMAND "${FL_NVIDIA_SMI}" --query-gpu=compute_cap --format=csv,noheader TIMEOUT 20
      OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE status)
    if(status EQUAL 0)
      string(REGEX MATCHALL "[0-9]+\\.[0-9]" found "${text}")
      list(REMOVE_DUPLICATES found)
    endif()
  endif()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# The list that is compiled for: "native" becomes this machine's GPUs, with the instructions that Hopper alone has.
# Warns of a list that leaves them out where somebody would miss them.
function(fl_cuda_architectures wanted result)
  fl_gpus_here(gpus)
  if(wanted STREQUAL "native" AND gpus)
    set(wanted "")
    foreach(gpu IN LISTS gpus)
      string(REPLACE "." "" gpu "${gpu}")
      string(REGEX REPLACE "^90$" "90a" gpu "${gpu}")
      list(APPEND wanted "${gpu}-real")
    endforeach()
  endif()
  foreach(entry IN LISTS wanted)
    if(entry MATCHES "^([0-9]+)[af]?(-real|-virtual)?$" AND CMAKE_MATCH_1 LESS 75)
      message(FATAL_ERROR "fastlinalg: FASTLINALG_CUDA_ARCHITECTURES=${wanted} has ${entry}; the kernels need compute "
                          "capability 7.5 or newer.")
    endif()
  endforeach()
  set(has_hopper FALSE)
  if("${wanted}" MATCHES "(^|;)90a(-real|-virtual)?(;|$)")
    set(has_hopper TRUE)
  endif()
  if(NOT has_hopper AND "${wanted}" MATCHES "(^|;)90(-real|-virtual)?(;|$)")
    message(WARNING "fastlinalg: FASTLINALG_CUDA_ARCHITECTURES=${wanted} has 90 and not 90a. The fast kernels for an "
                    "H100 or H200 exist as 90a alone and will be missing: write 90a, or 90a-real, in place of 90.")
  elseif(NOT has_hopper AND "9.0" IN_LIST gpus)
    message(WARNING "fastlinalg: this machine has a GPU of compute capability 9.0, and "
                    "FASTLINALG_CUDA_ARCHITECTURES=${wanted} has no 90a: its fast kernels will be missing.")
  endif()
  set(${result} "${wanted}" PARENT_SCOPE)
endfunction()
