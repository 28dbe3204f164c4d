# Which GPUs to compile for. Hopper's own instructions exist under the name 90a alone: code for 90 has no fast kernels.

# What wheels are built for: machine code for each capability that is sold, and PTX for those in between and after.
# 100f and 120f are the families 10.x and 12.x. PTX of 10.0 serves 11.0 as well as what is newer than all of these;
# that of 12.0 would not.
set(FL_RELEASE_ARCHITECTURES "75-real;80-real;86-real;89-real;90a-real;100f-real;120f-real;100-virtual")
# What a machine without a GPU builds: one compile of the reference device, and PTX for every GPU from 8.0 on.
set(FL_PORTABLE_ARCHITECTURES "90a-real;80-virtual")
# What the compiler knows machine code for (nvcc 13.0).
set(FL_KNOWN_CAPABILITIES 75 80 86 87 88 89 90 100 103 110 120 121)

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

# Machine code for GPUs ("9.0;8.6"), with the instructions that Hopper alone has; PTX for those that the compiler does
# not know. Those that are older than the kernels are left out.
function(fl_architectures_of gpus result)
  set(found "")
  foreach(gpu IN LISTS gpus)
    string(REPLACE "." "" gpu "${gpu}")
    if(gpu EQUAL 90)
      list(APPEND found "90a-real")
    elseif(gpu IN_LIST FL_KNOWN_CAPABILITIES)
      list(APPEND found "${gpu}-real")
    elseif(gpu GREATER 100)
      list(APPEND found "100-virtual")
    elseif(gpu GREATER 75)
      list(APPEND found "75-virtual")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES found)
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# The list that is compiled for: "release" becomes that of wheels, "native" this machine's GPUs, and "default" these,
# or where there are none, the portable list. Warns of a list that leaves Hopper's instructions out where somebody would
# miss them.
function(fl_cuda_architectures wanted result)
  fl_gpus_here(gpus)
  fl_architectures_of("${gpus}" here)
  if(wanted STREQUAL "release")
    set(wanted "${FL_RELEASE_ARCHITECTURES}")
  elseif(wanted STREQUAL "default")
    set(wanted "${FL_PORTABLE_ARCHITECTURES}")
    if(here)
      set(wanted "${here}")
    endif()
  elseif(wanted STREQUAL "native" AND here)
    set(wanted "${here}")
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
