# fl_compile_by_folder(TARGET FILES...): the files of a folder are one compilation, as headers cost most files more than
# their own lines. Names of anonymous namespaces have to differ within a folder.
function(fl_compile_by_folder target)
  foreach(file IN LISTS ARGN)
    cmake_path(GET file PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/..")
    if(file MATCHES "/ladder/[a-z]+(_0[0-9])_")  # the kernels of a step
      string(APPEND folder "${CMAKE_MATCH_1}")
    elseif(folder MATCHES "cpp/kernels/" OR NOT file MATCHES "\\.cpp$|/sgemv/sgemv_|/transpose/transpose_")
      continue()  # flags of their own, or large: other cores would wait for one
    endif()
    string(MAKE_C_IDENTIFIER "${folder}" group)
    set_source_files_properties("${file}" PROPERTIES UNITY_GROUP "${group}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
