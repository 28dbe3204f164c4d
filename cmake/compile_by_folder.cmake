# fl_compile_by_folder(TARGET FILES...): the files of some folders are one compilation, as headers cost most files more
# than their own lines. Names of anonymous namespaces have to differ within a compilation.
function(fl_compile_by_folder target)
  cmake_path(GET CMAKE_CURRENT_FUNCTION_LIST_DIR PARENT_PATH root)
  foreach(source IN LISTS ARGN)
    cmake_path(NORMAL_PATH source OUTPUT_VARIABLE file)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${root}")
    cmake_path(GET file PARENT_PATH group)
    if(file MATCHES "^cpp/kernels/|/sgemm_accurate/|_(spread|large|before_hopper|slabs)\\.cu$")
      continue()  # flags of their own; or large, so that other cores would wait for one; or it would be other code
    elseif(file MATCHES "^cpp/(run|dispatch)/")
      set(group "calls")
    elseif(file MATCHES "^cpp/bindings/((grouped|operators|sharded)/|[^/]+$)")
      set(group "bindings")
    elseif(file MATCHES "^cpp/" AND NOT file MATCHES "^cpp/(bindings|capi)/")
      set(group "below_calls")
    endif()
    string(MAKE_C_IDENTIFIER "${group}" group)
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${group}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# nanobind's own files are made for being one compilation.
function(fl_compile_nanobind_as_one)
  get_directory_property(targets BUILDSYSTEM_TARGETS)
  list(FILTER targets INCLUDE REGEX "^nanobind-")
  set_target_properties(${targets} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
endfunction()
